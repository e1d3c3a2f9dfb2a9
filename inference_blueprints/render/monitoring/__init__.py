"""What is measured, shown and alarmed: queries, dashboards and alarms as data, and what fills them."""
