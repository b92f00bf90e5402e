-- Nobody looks for a script's call by its record: every call of every script would be filed for nothing.
DROP INDEX run_call_entry;
