"""The meaning of compensation as pure data and functions: no Temporal, no I/O, no clock."""
