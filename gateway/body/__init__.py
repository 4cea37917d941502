"""The bodies of requests and answers: read within limits, and decoded."""
