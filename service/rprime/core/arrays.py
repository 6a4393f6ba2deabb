"""Array types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""float64, or complex128 when the delta method perturbs the margins."""
FloatArray = NDArray[np.float64]
