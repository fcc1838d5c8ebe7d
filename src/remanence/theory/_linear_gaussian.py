"""The linear recurrent network with Gaussian output, exactly: covariances three ways, mutual information, poles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remanence._validate import message, positive_int, real, shape


@dataclass(frozen=True)
class LinearGaussianRNN:
    """``h_t = W_h x_{t-1} + U_h h_{t-1}``, ``o_t = U_o h_{t-1}``, ``x_t ~ N(o_t, sigma^2)``: Shen 2019, Eqs 3 and 4.

    Hidden states and outputs together form a linear chain, ``(h_t, x_t) = C (h_{t-1}, x_{t-1}) + noise`` with the
    closed loop ``C = [[U_h, W_h], [U_o, 0]]``.

    Args:
        input_weight: W_h, ``(m, d)``.
        recurrent_weight: U_h, ``(m, m)``.
        output_weight: U_o, ``(d, m)``.
        noise: sigma.

    Example:
        >>> model = LinearGaussianRNN(np.eye(1), np.array([[0.5]]), np.array([[0.5]]))
        >>> round(model.spectral_radius, 4)
        1.0
    """

    input_weight: np.ndarray
    recurrent_weight: np.ndarray
    output_weight: np.ndarray
    noise: float = 1.0

    def __post_init__(self) -> None:
        shape("input_weight", self.input_weight, ("m", "d"))
        m, d = self.input_weight.shape
        shape("recurrent_weight", self.recurrent_weight, (m, m))
        shape("output_weight", self.output_weight, (d, m))
        real("noise", self.noise, above=0.0)

    @property
    def states(self) -> int:
        """The hidden dimension, m."""
        return len(self.recurrent_weight)

    @property
    def closed_loop(self) -> np.ndarray:
        """C, ``(m + d, m + d)``."""
        d = len(self.output_weight)
        return np.block([[self.recurrent_weight, self.input_weight], [self.output_weight, np.zeros((d, d))]])

    @property
    def spectral_radius(self) -> float:
        """The greatest modulus of an eigenvalue of the closed loop."""
        return float(np.abs(np.linalg.eigvals(self.closed_loop)).max())

    @property
    def poles(self) -> np.ndarray:
        """Where the generating function may have poles, nearest first: one over the eigenvalues of the closed loop."""
        eigenvalues = np.linalg.eigvals(self.closed_loop)
        found = 1 / eigenvalues[np.abs(eigenvalues) > np.finfo(float).eps]
        return found[np.argsort(np.abs(found))]

    @property
    def decay_rate(self) -> float:
        """Change of ln I per step far out, for a generic start: twice the logarithm of the closed loop's radius."""
        return 2 * float(np.log(self.spectral_radius))

    def stationary(self) -> np.ndarray:
        """The covariance of ``(h, x)`` that a step leaves as it is, ``(m + d, m + d)``.

        Raises:
            ValueError: if the closed loop does not contract, so that there is none.
        """
        if self.spectral_radius >= 1:
            hint = "Scale the weights down"
            raise ValueError(message("closed_loop", "have a spectral radius < 1", f"{self.spectral_radius:.4g}", hint))
        size = len(self.closed_loop)
        # P = C P C' + Q as a linear system in the entries of P: vec(C P C') = (C x C) vec(P).
        steps = np.eye(size * size) - np.kron(self.closed_loop, self.closed_loop)
        return np.linalg.solve(steps, self._noise_covariance().ravel()).reshape(size, size)

    def covariances(self, steps: int, start: np.ndarray) -> np.ndarray:
        """Covariances of x_t with x_0 for t = 0 .. steps, by powers of the closed loop.

        Args:
            steps: the last t.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``.

        Returns:
            ``(steps + 1, d, d)``.
        """
        column = self._start(start)[:, self.states :]
        found = [column[self.states :]]
        for _ in range(positive_int("steps", steps)):
            column = self.closed_loop @ column
            found.append(column[self.states :])
        return np.stack(found)

    def recursion(self, steps: int, start: np.ndarray, *, printed: bool = False) -> np.ndarray:
        """The same by the recursion that the paper states, put right; it sums over all of the past.

        S_t = U_o U_h^(t-1) S_hx + sum_{i <= t-2} U_o U_h^(t-2-i) W_h S_i. Equations 6, 15 and 21 have another U_h in
        each term.

        Args:
            steps: the last t.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``.
            printed: follow the equations as they are printed.

        Returns:
            ``(steps + 1, d, d)``.
        """
        start = self._start(start)
        m = self.states
        extra = int(printed)
        powers = [np.eye(m)]
        for _ in range(positive_int("steps", steps) + 1):
            powers.append(self.recurrent_weight @ powers[-1])
        found = [start[m:, m:]]
        for t in range(1, steps + 1):
            total = powers[t - 1 + extra] @ start[:m, m:]
            for i in range(t - 1):
                total = total + powers[t - 2 - i + extra] @ self.input_weight @ found[i]
            found.append(self.output_weight @ total)
        return np.stack(found)

    def generating_function(self, z: complex, start: np.ndarray, *, printed: bool = False) -> np.ndarray:
        """The sum of S_t z^t: Equation 7, put right, ``(d, d)`` complex.

        [I - U_o (I - U_h z)^-1 W_h z^2]^-1 [U_o (I - U_h z)^-1 S_hx z + S_0].

        Args:
            z: a number nearer to 0 than the first pole.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``.
            printed: with another U_h in both terms, as printed.
        """
        start = self._start(start)
        m = self.states
        resolvent = self.output_weight @ np.linalg.inv(np.eye(m) - self.recurrent_weight * z)
        if printed:
            resolvent = resolvent @ self.recurrent_weight
        loop = np.eye(len(self.output_weight)) - resolvent @ self.input_weight * z**2
        return np.linalg.solve(loop, resolvent @ start[:m, m:] * z + start[m:, m:])

    def series(self, steps: int, start: np.ndarray, *, printed: bool = False) -> np.ndarray:
        """The covariances as coefficients of the generating function, by Cauchy's integral over a circle.

        The circle has half the radius of the first pole; 2^-(points) is below the rounding.

        Args:
            steps: the last t.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``.
            printed: as printed.

        Returns:
            ``(steps + 1, d, d)``.
        """
        points = positive_int("steps", steps) + 64
        nearest = min([1.0, *np.abs(self.poles[:1])])
        radius = 0.5 * float(nearest)  # well inside the nearest pole, where the series converges
        circle = radius * np.exp(2j * np.pi * np.arange(points) / points)
        values = np.stack([self.generating_function(z, start, printed=printed) for z in circle])
        coefficients = np.fft.fft(values, axis=0).real / points
        return (coefficients / radius ** np.arange(points)[:, None, None])[: steps + 1]

    def variances(self, steps: int, start: np.ndarray) -> np.ndarray:
        """Covariances of x_t with itself for t = 0 .. steps, none with an eigenvalue below sigma^2 from t = 1 on.

        Args:
            steps: the last t.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``.

        Returns:
            ``(steps + 1, d, d)``.
        """
        together = self._start(start)
        found = [together]
        for _ in range(positive_int("steps", steps)):
            together = self.closed_loop @ together @ self.closed_loop.T + self._noise_covariance()
            found.append(together)
        return np.stack(found)[:, self.states :, self.states :]

    def mutual_information(self, steps: int, start: np.ndarray | None = None) -> np.ndarray:
        """I(x_0; x_t) in nats for t = 1 .. steps, exactly (Equation 8).

        Args:
            steps: the last t.
            start: covariance of ``(h_0, x_0)``, ``(m + d, m + d)``; ``None`` for the stationary one.

        Returns:
            ``(steps,)``.

        Example:
            >>> model = LinearGaussianRNN(np.eye(1), np.array([[0.5]]), np.array([[0.4]]))
            >>> model.mutual_information(3).round(4)
            array([0.054 , 0.1881, 0.091 ])
        """
        start = self.stationary() if start is None else start
        across = self.covariances(steps, start)[1:]
        within = self.variances(steps, start)
        explained = np.linalg.solve(within[0], np.swapaxes(across, 1, 2)) @ np.linalg.solve(within[1:], across)
        # The eigenvalues are squared canonical correlations; log1p keeps the small ones.
        return -0.5 * np.log1p(-np.linalg.eigvals(explained).real).sum(-1)

    def _noise_covariance(self) -> np.ndarray:
        d = len(self.output_weight)
        return np.diag(np.r_[np.zeros(self.states), np.full(d, self.noise**2)])

    def _start(self, start: np.ndarray) -> np.ndarray:
        return shape("start", np.asarray(start, dtype=float), self.closed_loop.shape)
