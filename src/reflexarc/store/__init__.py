"""What was done: sessions, steps, decisions, audits and the audit trail, in SQLite."""
