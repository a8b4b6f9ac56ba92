"""What becomes of a reflex in production: shadow reports, off and on, purging, relearning."""
