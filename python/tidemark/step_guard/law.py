"""How the memory of a step grows with the shape of its batch, from the peaks of earlier steps.

``bytes = constant + a * tokens + b * tokens * length``, with coefficients that are not negative: the part that does not depend
on the batch, activations, and the scores of attention that is not fused.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

from tidemark.step_guard.shapes import BatchShape

#: Shapes that have to be measured before the law is used, and how far apart they have to be: largest by smallest tokens.
MIN_SHAPES = 4
MIN_SPAN = 1.5
# Lengths within 3% of each other are one shape: the last measurement replaces the earlier one.
_LENGTH_STEP = log(1.03)
_MAX_SHAPES = 128
_LARGEST_KEPT = 16
# Relative errors of predictions made before the measurement; the bound covers the largest of the last ones.
_ERRORS_KEPT = 128
_ERRORS_NEEDED = 8
# A step whose need is not above this multiple of what it leaves allocated (its gradients) says little of its activations: the
# peak of a short batch is at the complete gradients, that of a longer one at the activations.
_OF_KEPT = 1.5
_LEAST_ERROR = 0.02
# A step that is predicted this well changes the coefficients only once in so many steps.
_PREDICTED = 0.01
# Standard errors of a prediction far from the measured shapes, and the least deviation of measurements that is assumed.
_STANDARD_ERRORS = 3
_LEAST_DEVIATION = 0.002
_STEPS_BETWEEN_FITS = 16
_UNTESTED_ERROR = 0.1
# As in `tidemark sweep`: another coefficient has to halve the squared error, and more if few shapes are left over.
_PRICE = log(2)
_EXACT = 1e-12
_DEPENDENT = 1e-9
# Where the products of two columns are among the sums.
_PLACES = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
_COLUMNS = [columns for count in (1, 2, 3) for columns in combinations(range(3), count)]


@dataclass(frozen=True)
class Prediction:
    """What a batch of some shape needs, in bytes."""

    #: By the law; ``None`` if it is not known yet.
    expected_bytes: float | None
    #: A step of this shape is not expected to need more.
    bound_bytes: float
    #: Whether enough shapes were measured. If not, the bound is that of the measured step that gives the lowest one.
    is_fitted: bool


@dataclass(frozen=True)
class _Point:
    shape: BatchShape
    needed: float
    row: tuple[float, float, float]


class MemoryLaw:
    """Fitted to measured steps, one at a time; adding one and predicting take microseconds. Not thread-safe.

    A prediction is a bound, not a mean: the law's value, raised by the largest relative error of its last 128 predictions (at
    least 2%, and 10% before it was tested); or, if it is higher, the value with all three coefficients and three standard
    errors, which grow with the distance from the measured shapes: growth with the square of the length may be hidden in what is
    not explained. Until the law is known, the bound is a measured need in proportion to the tokens, and to the square for
    longer samples: no law of this form needs more.
    """

    def __init__(self) -> None:
        self._points: dict[tuple[int, int], _Point] = {}
        self._largest: list[_Point] = []
        self._errors: deque[float] = deque(maxlen=_ERRORS_KEPT)
        self._scale: tuple[float, float, float] | None = None
        self._sums = [0.0] * 9
        self._coefficients: tuple[float, float, float] | None = None
        self._full: tuple[list[float], list[list[float]], float] | None = None
        self._longest = 0
        self._span = (0, 0)
        self._floor: _Point | None = None
        self._error = _UNTESTED_ERROR
        self._since_fit = 0

    @property
    def shapes(self) -> int:
        """How many different shapes the law has been fitted to."""
        return len(self._points)

    @property
    def coefficients(self) -> tuple[float, float, float] | None:
        """Bytes: the constant, for each token, and for each token times length; ``None`` before the law is known."""
        return self._coefficients if self._is_fitted() else None

    @property
    def error(self) -> float:
        """The relative error that bounds allow for."""
        return self._error

    def add(self, shape: BatchShape, needed_bytes: float, kept_bytes: float = 0) -> None:
        """Take a measured step: its peak, and what it left allocated, both above what was allocated at its beginning.

        A step that needs little more than what it leaves does not change the law, but is a least need of all shapes.
        """
        if needed_bytes <= 0:
            return
        if needed_bytes <= _OF_KEPT * kept_bytes:
            self._raise_floor(shape, needed_bytes)
            return
        error = float("inf")
        if self._is_fitted():
            error = needed_bytes / max(1.0, self._value(shape)) - 1
            self._errors.append(max(0.0, error))
        if self._scale is None:
            self._scale = (float(shape.tokens), float(shape.squares), float(needed_bytes))
        tokens, squares, unit = self._scale
        needed = needed_bytes / unit
        row = (1 / needed, shape.tokens / tokens / needed, shape.squares / squares / needed)
        self._replace((shape.samples, round(log(shape.length) / _LENGTH_STEP)), _Point(shape, float(needed_bytes), row))
        self._since_fit += 1
        if abs(error) > _PREDICTED or self._since_fit == _STEPS_BETWEEN_FITS:
            self._since_fit = 0
            self._fit()
        tested = min(len(self._errors), _ERRORS_NEEDED) / _ERRORS_NEEDED
        self._error = max(_LEAST_ERROR * tested + _UNTESTED_ERROR * (1 - tested), *self._errors, 0.0)

    def predict(self, shape: BatchShape) -> Prediction | None:
        """What a batch of this shape needs; ``None`` if nothing was measured."""
        if not self._points and self._floor is None:
            return None
        if not self._is_fitted():
            return Prediction(None, self._in_proportion(shape), False)
        expected = self._value(shape)
        error = self._error
        bound = max(expected * (1 + error), self._far_bound(shape, expected))
        if shape.length > self._longest or shape.tokens > self._span[1]:
            bound = min(bound, max(expected, self._in_proportion(shape) * (1 + error)))
        return Prediction(expected, max(bound, self._floor.needed if self._floor else 0.0), True)

    def _is_fitted(self) -> bool:
        least, most = self._span
        return self._coefficients is not None and len(self._points) >= MIN_SHAPES and most >= MIN_SPAN * least

    def _value(self, shape: BatchShape) -> float:
        assert self._coefficients is not None
        constant, by_token, by_square = self._coefficients
        return constant + by_token * shape.tokens + by_square * shape.squares

    def _far_bound(self, shape: BatchShape, expected: float) -> float:
        """The prediction of all three coefficients and its standard errors; infinite beyond the longest sample if lengths
        differ too little for them."""
        assert self._scale is not None
        if self._full is None:
            return float("inf") if shape.length > self._longest else 0.0
        tokens, squares, unit = self._scale
        needed = max(expected, 1.0) / unit
        row = (1 / needed, shape.tokens / tokens / needed, shape.squares / squares / needed)
        coefficients, inverse, deviation = self._full
        leverage = sum(one * sum(two * cell for two, cell in zip(row, cells)) for one, cells in zip(row, inverse))
        share = sum(one * coefficient for one, coefficient in zip(row, coefficients))
        return expected * (share + _STANDARD_ERRORS * deviation * sqrt(max(0.0, leverage)))

    def _raise_floor(self, shape: BatchShape, needed_bytes: float) -> None:
        """Remember the largest such step: activations of its shape need no more than it did."""
        if self._floor is not None:
            needed_bytes = max(needed_bytes, self._floor.needed)
            shape = max(shape, self._floor.shape, key=lambda one: one.tokens)
        self._floor = _Point(shape, float(needed_bytes), (0.0, 0.0, 0.0))

    def _in_proportion(self, shape: BatchShape) -> float:
        """The lowest of the bounds that one measured step gives each: with the constant anywhere between 0 and all of it."""
        lowest = float("inf")
        measured = self._largest if self._floor is None else [*self._largest, self._floor]
        for point in measured:
            longer = shape.length / point.shape.length
            growth = shape.samples / point.shape.samples * (longer if longer < 1 else longer * longer)
            lowest = min(lowest, point.needed * max(1.0, growth))
        return max(lowest, self._floor.needed if self._floor else 0.0)

    def _replace(self, key: tuple[int, int], point: _Point) -> None:
        before = self._points.pop(key, None)
        if before is None and len(self._points) == _MAX_SHAPES:
            largest = {id(one) for one in self._largest}
            before = self._points.pop(next(one for one, kept in self._points.items() if id(kept) not in largest))
        if before is not None:
            self._sum(before.row, -1)
        self._points[key] = point
        self._sum(point.row, 1)
        self._largest = [one for one in self._largest if one is not before]
        if len(self._largest) < _LARGEST_KEPT or point.needed > self._largest[-1].needed:
            self._largest.append(point)
            self._largest.sort(key=lambda one: -one.needed)
            del self._largest[_LARGEST_KEPT:]
        self._longest = max(self._longest, point.shape.length)
        least, most = self._span
        tokens = point.shape.tokens
        self._span = (min(least, tokens) if least else tokens, max(most, tokens))

    def _sum(self, row: tuple[float, float, float], sign: int) -> None:
        """Products of the columns, then the columns (the values are 1: errors are shares)."""
        a, b, c = row
        for index, value in enumerate((a * a, a * b, a * c, b * b, b * c, c * c, a, b, c)):
            self._sums[index] += sign * value

    def _fit(self) -> None:
        count = len(self._points)
        best = None
        for columns in _COLUMNS:
            if len(columns) > max(1, count - 1):
                break
            solved = self._solve(columns)
            if solved is None:
                continue
            squares, coefficients = solved
            used = len(columns)
            score = log(max(_EXACT, squares / count)) + _PRICE * used * count / max(0.5, count - used)
            if best is None or score < best[0]:
                best = (score, coefficients)
        if best is None or self._scale is None:
            return
        tokens, squares, unit = self._scale
        constant, by_token, by_square = best[1]
        self._coefficients = (constant * unit, by_token * unit / tokens, by_square * unit / squares)
        self._fit_all(count)

    def _fit_all(self, count: int) -> None:
        """All three coefficients, negative ones too, for the bound far from the measured shapes."""
        inverse = _inverse([[self._sums[index] for index in row] for row in _PLACES])
        if inverse is None or count <= 3:
            self._full = None
            return
        right = self._sums[6:]
        coefficients = [sum(cell * value for cell, value in zip(row, right)) for row in inverse]
        squares = max(0.0, count - sum(one * value for one, value in zip(coefficients, right)))
        self._full = (coefficients, inverse, max(_LEAST_DEVIATION, sqrt(squares / (count - 3))))

    def _solve(self, columns: tuple[int, ...]) -> tuple[float, list[float]] | None:
        """The sum of squared errors and the coefficients; ``None`` if one is negative, or the columns depend on each other."""
        rows = [[self._sums[_PLACES[i][j]] for j in columns] + [self._sums[6 + i]] for i in columns]
        size = len(columns)
        for index in range(size):
            pivot = rows[index][index]
            if pivot <= _DEPENDENT * self._sums[_PLACES[columns[index]][columns[index]]]:
                return None
            for below in range(index + 1, size):
                factor = rows[below][index] / pivot
                rows[below] = [one - factor * other for one, other in zip(rows[below], rows[index])]
        solution = [0.0] * size
        for index in reversed(range(size)):
            left = rows[index][size] - sum(rows[index][j] * solution[j] for j in range(index + 1, size))
            solution[index] = left / rows[index][index]
            if solution[index] < 0:
                return None
        # The least squares solution's error: values minus what it explains.
        squares = len(self._points) - sum(solution[index] * self._sums[6 + column] for index, column in enumerate(columns))
        coefficients = [0.0, 0.0, 0.0]
        for value, column in zip(solution, columns):
            coefficients[column] = value
        return max(0.0, squares), coefficients


def _inverse(matrix: list[list[float]]) -> list[list[float]] | None:
    """Of a symmetric matrix with positive pivots; ``None`` if its columns depend on each other."""
    size = len(matrix)
    rows = [[*row, *(float(index == column) for column in range(size))] for index, row in enumerate(matrix)]
    for index in range(size):
        pivot = rows[index][index]
        if pivot <= _DEPENDENT * matrix[index][index]:
            return None
        rows[index] = [cell / pivot for cell in rows[index]]
        for other in range(size):
            if other != index:
                factor = rows[other][index]
                rows[other] = [one - factor * two for one, two in zip(rows[other], rows[index])]
    return [row[size:] for row in rows]
