"""All rows of the tables of operators."""

import operator_attention
import operator_convolutions
import operator_integers
import operator_made
import operator_moving
import operator_picks
import operator_pointwise
import operator_quantized
import operator_recurrent
import operator_resizes
import operator_sequences
import operator_spectra
import operator_sums
import operator_windows
from operator_rows import Row

ROWS: tuple[Row, ...] = (
    *operator_pointwise.ROWS,
    *operator_moving.ROWS,
    *operator_sums.ROWS,
    *operator_integers.ROWS,
    *operator_picks.ROWS,
    *operator_windows.ROWS,
    *operator_convolutions.ROWS,
    *operator_resizes.ROWS,
    *operator_sequences.ROWS,
    *operator_attention.ROWS,
    *operator_recurrent.ROWS,
    *operator_quantized.ROWS,
    *operator_spectra.ROWS,
    *operator_made.ROWS,
)
