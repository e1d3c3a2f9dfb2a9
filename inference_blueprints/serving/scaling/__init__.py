"""How elastic workers follow their load: queries, targets and headroom, computed from the plan."""
