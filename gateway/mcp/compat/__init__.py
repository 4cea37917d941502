"""The tools of two other systems, by their names and with their parameters, on ours."""
