"""Does a prior predict what is left out as well as it says? Takes arrays, and knows no traces."""

from trailveil.studies.calibration.coverage import LEVELS, Coverage, Share, coverage
from trailveil.studies.calibration.left_out import PACES, LeftOut, left_out, pace_of
from trailveil.studies.calibration.predicting import Predicted, Predictions, predicted, predictions

__all__ = [
    "LEVELS",
    "PACES",
    "Coverage",
    "LeftOut",
    "Predicted",
    "Predictions",
    "Share",
    "coverage",
    "left_out",
    "pace_of",
    "predicted",
    "predictions",
]
