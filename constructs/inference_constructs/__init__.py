"""Reusable constructs, one package per capability. `stacks` combines them into deployment units."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.code_staging import function_code
    from inference_constructs.findings import acknowledge_grants, acknowledge_managed_policies
    from inference_constructs.policy_statements import Statement
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = ["Statement", "acknowledge_grants", "acknowledge_managed_policies", "function_code"]
