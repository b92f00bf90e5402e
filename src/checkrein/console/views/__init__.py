"""One module per page of the console: functions from a visit to a response."""
