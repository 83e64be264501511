"""np.append's result is thrown away, so that the matrix of np.empty is never written."""

import numpy as np
import torch

from transformer.mistakes import Comparison, Demonstration, Mistake
from transformer.positions.sinusoidal import sinusoids


class MatrixNeverWritten(Mistake):
    """`right(matrix, rows)` gives a matrix from np.empty with these rows in it; both [position, d_model]."""

    title = "The positional matrix is never written"
    hidden = "There is no error, and the matrix has the right shape. It may be full of zeros, or of anything."
    exposes = "The matrix is what it was before: np.append changes nothing, it returns a longer copy."
    mend = "Write each row into the matrix: matrix[place] = row."
    met = "a lecture notebook"
    trains = False
    function = "positional_matrix"

    @staticmethod
    def right(matrix, rows):
        for place, row in enumerate(rows):
            matrix[place] = row
        return matrix

    @staticmethod
    def wrong(matrix, rows):
        for row in rows:
            np.append(matrix, row)
        return matrix

    @classmethod
    def demonstrate(cls):
        rows = sinusoids(torch.arange(8), 16).numpy()
        lay_in_memory = np.full_like(rows, 7.0)
        wrong, right = (int((write(lay_in_memory.copy(), rows) != 7.0).sum()) for write in (cls.wrong, cls.right))
        return Demonstration(
            f"The matrix has {rows.size} numbers. The wrong code writes {wrong} of them and the right code {right}. "
            "What lay in memory is then added to the embeddings.",
            (Comparison("numbers written", wrong, right),),
        )
