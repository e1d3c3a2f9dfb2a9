"""Prices of a model's requests."""

from pydantic import Field

from inference_blueprints.spec.section import Section


class Rates(Section):
    """Prices that teams are charged. `blueprints plan` shows the cost of the platform itself."""

    # Every request has a prompt, so no job costs 0 dollars and passes every budget.
    usd_per_million_input_tokens: float = Field(gt=0.0, le=1000.0)
    """US dollars per million prompt tokens."""
    usd_per_million_output_tokens: float = Field(ge=0.0, le=1000.0)
    """US dollars per million answer tokens."""
