"""The policy process of the front door: Envoy asks it once per request, and it settles what was used."""
