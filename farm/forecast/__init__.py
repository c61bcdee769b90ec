"""When the work will be finished: a range, from the books, the policy and the measured speeds."""

from farm.forecast.estimate import Estimate, estimate
from farm.forecast.forecaster import Forecaster
from farm.forecast.outlook import Outlook, outlook_of

__all__ = ["Estimate", "Forecaster", "Outlook", "estimate", "outlook_of"]
