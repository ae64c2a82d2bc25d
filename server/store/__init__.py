"""What outlives a process: runs, their event logs, their artifacts."""
