"""The signal store: a cache for reads at request time, and the history of all written values."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.signals.signal_access import SignalAccess
    from inference_constructs.signals.signal_cache import PORT, SignalCache
    from inference_constructs.signals.signal_history import SignalHistory
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = ["PORT", "SignalAccess", "SignalCache", "SignalHistory"]
