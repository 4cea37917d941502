"""Commands about what is sent: `desk`, `savings`."""
