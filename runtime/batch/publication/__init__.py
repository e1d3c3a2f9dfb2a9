"""From the answers of a job to signals: each under its line's custom_id, and all of them in the history."""
