"""Stencils on grids: PolyBench's, and those of weather, seismic and electromagnetic codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import Draw, copied, program, uniform


@program("jacobi-1d", a=(10007,))
def jacobi_1d(xp: Any, a: Any) -> Any:
    """Six sweeps of the mean of three; ends stay (PolyBench)."""
    for _ in range(6):
        inner = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a = xp.concatenate([a[:1], inner, a[-1:]], 0)
    return a


@program("jacobi-2d", a=(131, 127))
def jacobi_2d(xp: Any, a: Any) -> Any:
    """Four sweeps of the mean of five, in place from a copy; the border stays (PolyBench)."""
    for _ in range(4):
        b = copied(a)
        around = a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + around)
        a = b
    return a


@program("seidel-2d", a=(7, 9))
def seidel_2d(xp: Any, a: Any) -> Any:
    """One sweep of the mean of nine, in place and in order (PolyBench)."""
    rows, columns = a.shape
    grid = [[a[i, j] for j in range(columns)] for i in range(rows)]
    for i in range(1, rows - 1):
        for j in range(1, columns - 1):
            near = [grid[i + p][j + q] for p in (-1, 0, 1) for q in (-1, 0, 1)]
            total = near[0]
            for one in near[1:]:
                total = total + one
            grid[i][j] = total / 9
    return xp.stack([xp.stack(row) for row in grid])


@program("heat-3d", a=(21, 23, 35))
def heat_3d(xp: Any, a: Any) -> Any:
    """Two sweeps of the heat equation, in place from a copy; the surface stays (PolyBench)."""
    for _ in range(2):
        b, inner = copied(a), a[1:-1, 1:-1, 1:-1]
        x = a[2:, 1:-1, 1:-1] - 2 * inner + a[:-2, 1:-1, 1:-1]
        y = a[1:-1, 2:, 1:-1] - 2 * inner + a[1:-1, :-2, 1:-1]
        z = a[1:-1, 1:-1, 2:] - 2 * inner + a[1:-1, 1:-1, :-2]
        b[1:-1, 1:-1, 1:-1] = inner + 0.125 * x + 0.125 * y + 0.125 * z
        a = b
    return a


@program("fdtd-2d", ex=(61, 83), ey=(61, 83), hz=(61, 83))
def fdtd_2d(xp: Any, ex: Any, ey: Any, hz: Any) -> Any:
    """Three steps of Maxwell's equations on Yee's grid, in place (PolyBench)."""
    ex, ey, hz = copied(ex), copied(ey), copied(hz)
    for step in range(3):
        ey[0] = float(step)
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        hz[:-1, :-1] -= 0.7 * curl
    return ex, ey, hz


def _sweep(xp: Any, right: Any, a: float, b: float) -> Any:
    """Solve (-a, b, -a) systems along axis 0 with ones at both ends, by Thomas."""
    n = right.shape[0]
    p, q, found = 0.0, xp.ones_like(right[0]), []
    kept = []
    for j in range(1, n - 1):
        scale = 1 / (b - a * p)
        q = (right[j] + a * q) * scale
        p = a * scale
        kept.append((p, q))
    v = xp.ones_like(right[0])
    found = [v]
    for p, q in reversed(kept):
        v = p * v + q
        found.append(v)
    found.append(xp.ones_like(v))
    return xp.stack(found[::-1], 0)


@program("adi", u=(15, 15))
def adi(xp: Any, u: Any) -> Any:
    """A step of alternating directions: implicit in columns, then in rows (PolyBench)."""
    half = 0.6
    inner = half * u[:, :-2] + (1 - 2 * half) * u[:, 1:-1] + half * u[:, 2:]
    one = xp.ones_like(u[:, :1])
    v = xp.concatenate([one, _sweep(xp, inner, half, 1 + 2 * half), one], 1)
    across = half * v[:-2] + (1 - 2 * half) * v[1:-1] + half * v[2:]
    one = xp.ones_like(u[:1])
    return xp.concatenate([one, _sweep(xp, across.T, half, 1 + 2 * half).T, one], 0)


@program("horizontal diffusion", u=(9, 53, 57), k=uniform(9, 53, 57))
def horizontal_diffusion(xp: Any, u: Any, k: Any) -> Any:
    """Diffusion of fourth order with a limiter of fluxes, of weather codes (COSMO)."""
    inner = u[:, 1:-1, 1:-1]
    lap = 4 * inner - u[:, 2:, 1:-1] - u[:, :-2, 1:-1] - u[:, 1:-1, 2:] - u[:, 1:-1, :-2]
    fx = lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1]
    fx = xp.where(fx * (u[:, 2:-1, 2:-2] - u[:, 1:-2, 2:-2]) > 0, xp.zeros_like(fx), fx)
    fy = lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1]
    fy = xp.where(fy * (u[:, 2:-2, 2:-1] - u[:, 2:-2, 1:-2]) > 0, xp.zeros_like(fy), fy)
    flow = fx[:, 1:] - fx[:, :-1] + fy[:, :, 1:] - fy[:, :, :-1]
    return u[:, 2:-2, 2:-2] - k[:, 2:-2, 2:-2] * flow


@program("vertical advection", w=(13, 41, 37), u=(13, 41, 37))
def vertical_advection(xp: Any, w: Any, u: Any) -> Any:
    """Implicit advection in columns of air: Thomas's method along levels (COSMO)."""
    levels = u.shape[0]
    c, d = [], []
    for k in range(levels):
        g = 0.05 * w[k]
        upper = g if k < levels - 1 else xp.zeros_like(g)
        lower = -g if k else xp.zeros_like(g)
        scale = 1 / (1 - lower * c[-1]) if k else xp.ones_like(g)
        c.append(upper * scale)
        d.append((u[k] - lower * d[-1]) * scale if k else u[k])
    found = [d[-1]]
    for k in range(levels - 2, -1, -1):
        found.append(d[k] - c[k] * found[-1])
    return xp.stack(found[::-1], 0)


#: The second derivative of eighth order.
EIGHTH = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


@program("acoustic wave, eighth order", u=(75, 91), before=(75, 91), speed=uniform(67, 83))
def acoustic(xp: Any, u: Any, before: Any, speed: Any) -> Any:
    """Two steps of the wave equation of seismic codes: eighth order in space, second in time."""
    for _ in range(2):
        second = 2 * EIGHTH[0] * u[4:-4, 4:-4]
        for r in range(1, 5):
            rows = u[4 - r : -4 - r, 4:-4] + u[4 + r : u.shape[0] - 4 + r, 4:-4]
            columns = u[4:-4, 4 - r : -4 - r] + u[4:-4, 4 + r : u.shape[1] - 4 + r]
            second = second + EIGHTH[r] * (rows + columns)
        after = copied(u)
        inner = 2 * u[4:-4, 4:-4] - before[4:-4, 4:-4] + 0.2 * speed * second
        after[4:-4, 4:-4] = inner
        u, before = after, u
    return u


@program("elastic wave, staggered", **dict.fromkeys(("vx", "vy", "sxx", "syy", "sxy"), (57, 63)))
def elastic(xp: Any, vx: Any, vy: Any, sxx: Any, syy: Any, sxy: Any) -> Any:
    """Two steps of velocities and stresses on a staggered torus (Virieux)."""

    def ahead(x: Any, axis: int) -> Any:
        return xp.roll(x, -1, axis) - x

    def behind(x: Any, axis: int) -> Any:
        return x - xp.roll(x, 1, axis)

    for _ in range(2):
        vx = vx + 0.3 * (ahead(sxx, 0) + behind(sxy, 1))
        vy = vy + 0.3 * (behind(sxy, 0) + ahead(syy, 1))
        dx, dy = behind(vx, 0), behind(vy, 1)
        sxx, syy = sxx + 0.6 * dx + 0.2 * dy, syy + 0.2 * dx + 0.6 * dy
        sxy = sxy + 0.2 * (ahead(vx, 1) + ahead(vy, 0))
    return vx, vy, sxx, syy, sxy


@program("Himeno", p=(17, 19, 35), bound=uniform(17, 19, 35))
def himeno(xp: Any, p: Any, bound: Any) -> Any:
    """Two sweeps of Himeno's Poisson solver of nineteen points, its coefficients constants."""
    sides, omega = 1 / 6, 0.8
    for _ in range(2):

        def at(i: int, j: int, k: int, p: Any = p) -> Any:
            n, m, o = p.shape
            return p[1 + i : n - 1 + i, 1 + j : m - 1 + j, 1 + k : o - 1 + k]

        total = at(1, 0, 0) + at(0, 1, 0) + at(0, 0, 1) + at(-1, 0, 0) + at(0, -1, 0)
        total = total + at(0, 0, -1)
        cross = at(1, 1, 0) - at(1, -1, 0) - at(-1, 1, 0) + at(-1, -1, 0)
        cross = cross + at(0, 1, 1) - at(0, -1, 1) - at(0, 1, -1) + at(0, -1, -1)
        cross = cross + at(1, 0, 1) - at(-1, 0, 1) - at(1, 0, -1) + at(-1, 0, -1)
        inner = at(0, 0, 0)
        rest = ((total + 0.25 * cross) * sides - inner) * bound[1:-1, 1:-1, 1:-1]
        p = copied(p)
        p[1:-1, 1:-1, 1:-1] = inner + omega * rest
    return p


def _velocities(rows: int, columns: int) -> Draw:
    return lambda rng: 1 + 0.05 * rng.standard_normal((9, rows, columns))


@program("lattice Boltzmann D2Q9", f=_velocities(43, 47))
def lattice_boltzmann(xp: Any, f: Any) -> Any:
    """Two steps on a torus: moves along nine directions, then collisions (Bhatnagar and others)."""
    east = (0, 1, 0, -1, 0, 1, -1, -1, 1)
    north = (0, 0, 1, 0, -1, 1, 1, -1, -1)
    weights = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)
    parts = [f[q] for q in range(9)]
    for _ in range(2):
        parts = [xp.roll(parts[q], (east[q], north[q]), (0, 1)) for q in range(9)]
        rho = sum(parts[1:], parts[0])
        ux = (parts[1] + parts[5] + parts[8] - parts[3] - parts[6] - parts[7]) / rho
        uy = (parts[2] + parts[5] + parts[6] - parts[4] - parts[7] - parts[8]) / rho
        square = 1.5 * (ux * ux + uy * uy)
        made = []
        for q in range(9):
            along = 3 * (east[q] * ux + north[q] * uy)
            balance = weights[q] * rho * (1 + along + 0.5 * along * along - square)
            made.append(parts[q] + 0.6 * (balance - parts[q]))
        parts = made
    return xp.stack(parts, 0)


@program("advection, Lax-Wendroff", q=(101, 117))
def lax_wendroff(xp: Any, q: Any) -> Any:
    """Three steps of a constant wind on a torus, axis by axis, of second order."""
    for _ in range(3):
        for axis, c in ((0, 0.4), (1, -0.3)):
            left, right = xp.roll(q, 1, axis), xp.roll(q, -1, axis)
            q = q - 0.5 * c * (right - left) + 0.5 * c * c * (right - 2 * q + left)
    return q


@program("shallow water", h=uniform(61, 67, low=1.0, high=1.2), u=(61, 67), v=(61, 67))
def shallow_water(xp: Any, h: Any, u: Any, v: Any) -> Any:
    """Two steps of the conserved equations on a torus by Lax and Friedrichs."""
    hu, hv, ratio, g = 0.1 * h * u, 0.1 * h * v, 0.1, 9.81
    for _ in range(2):
        pressure = 0.5 * g * h * h
        flows = (
            (h, hu, hv),
            (hu, hu * hu / h + pressure, hu * hv / h),
            (hv, hu * hv / h, hv * hv / h + pressure),
        )
        made = []
        for q, fx, fy in flows:
            mean = xp.roll(q, 1, 0) + xp.roll(q, -1, 0) + xp.roll(q, 1, 1) + xp.roll(q, -1, 1)
            flow = xp.roll(fx, -1, 0) - xp.roll(fx, 1, 0) + xp.roll(fy, -1, 1) - xp.roll(fy, 1, 1)
            made.append(0.25 * mean - 0.5 * ratio * flow)
        h, hu, hv = made
    return h, hu, hv


@program("Euler, one axis", rho=uniform(5003, low=0.5, high=1.5), u=(5003,), p=uniform(5003))
def euler(xp: Any, rho: Any, u: Any, p: Any) -> Any:
    """A step of gas dynamics with fluxes of Rusanov, ends open."""
    gamma = 1.4
    u, p = 0.3 * u, p + 0.5
    state = (rho, rho * u, p / (gamma - 1) + 0.5 * rho * u * u)
    flow = (state[1], state[1] * u + p, u * (state[2] + p))
    fastest = xp.abs(u) + xp.sqrt(gamma * p / rho)
    fastest = xp.maximum(fastest[1:], fastest[:-1])
    made = []
    for q, f in zip(state, flow, strict=True):
        between = 0.5 * (f[1:] + f[:-1]) - 0.5 * fastest * (q[1:] - q[:-1])
        made.append(q[1:-1] - 0.2 * (between[1:] - between[:-1]))
    return tuple(made)


@program("Gray-Scott", u=uniform(91, 97), v=uniform(91, 97))
def gray_scott(xp: Any, u: Any, v: Any) -> Any:
    """Three steps of reaction and diffusion on a torus (Pearson)."""
    for _ in range(3):
        around = []
        for q in (u, v):
            near = xp.roll(q, 1, 0) + xp.roll(q, -1, 0) + xp.roll(q, 1, 1) + xp.roll(q, -1, 1)
            around.append(near - 4 * q)
        burnt = u * v * v
        u = u + 0.16 * around[0] - burnt + 0.035 * (1 - u)
        v = v + 0.08 * around[1] + burnt - 0.1 * v
    return u, v


@program(
    "Ising, checkerboard", s=lambda rng: np.sign(rng.standard_normal((64, 66))), r=uniform(64, 66)
)
def ising(xp: Any, s: Any, r: Any) -> Any:
    """A sweep of Metropolis on a torus, with given random numbers: black points, then white."""
    for colour in (0, 1):
        near = xp.roll(s, 1, 0) + xp.roll(s, -1, 0) + xp.roll(s, 1, 1) + xp.roll(s, -1, 1)
        turned = xp.where(r < xp.exp(-0.88 * s * near), -s, s)
        rows, columns = (xp.arange(n) for n in s.shape)
        black = (rows[:, None] + columns) % 2 == colour
        s = xp.where(black, turned, s)
    return s
