"""What a run tells those who operate it: log records, metrics and, where it is safe, spans."""
