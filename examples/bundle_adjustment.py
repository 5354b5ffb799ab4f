"""Bundle adjustment
=================

Where were the cameras, and what did they see? Levenberg and Marquardt's method with blocks of exact derivatives.

Twelve cameras around a knot have each seen most of its 400 points, with an error of half a pixel. Both the poses of the
cameras and the places of the points are unknown: 1,272 numbers. Each observation concerns one camera and one point, so
its derivatives are a block 2 x 6 and a block 2 x 3, and the points can be eliminated one by one (Schur's complement,
Triggs and others 2000). One observation is written; `vmap(jacfwd)` gives all blocks.

    python examples/bundle_adjustment.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp

CAMERAS, POINTS, FOCAL, ERROR = 12, 400, 800.0, 0.5  # focal length and error in pixels


def rotate(axis, points):
    """Rodrigues' formula: turn about an axis (3,) by its length; smooth where the length is zero."""
    square = axis @ axis
    near = square < 1e-12
    angle = fnp.sqrt(fnp.where(near, 1.0, square))
    sine = fnp.where(near, 1.0, fnp.sin(angle) / angle)
    rest = fnp.where(near, 0.5, (1.0 - fnp.cos(angle)) / angle**2)
    across = fnp.cross(axis, points)
    return points + sine * across + rest * fnp.cross(axis, across)


def project(camera, point):
    """The pixels (2,) of a point (3,) in a camera (6,): its turn, and the place of the world's origin in its view."""
    x = rotate(camera[:3], point) + camera[3:]
    return FOCAL * x[:2] / x[2]


def residual(camera, point, pixels):
    return project(camera, point) - pixels


residuals = ft.jit(ft.vmap(residual))
blocks = ft.jit(ft.vmap(ft.jacfwd(residual, argnums=(0, 1))))

# %%
# Sums over the observations of a camera or a point are scatters; the system of the points falls apart into 3 x 3, so
# what remains to be solved is as large as the cameras' unknowns.


@ft.jit
def step(cameras, points, pixels, seen_by, seen, damping):
    """New cameras and points; seen_by, seen: the camera and the point of each observation."""
    a, b = blocks(cameras[seen_by], points[seen], pixels)
    r = residuals(cameras[seen_by], points[seen], pixels)
    u = fnp.zeros((CAMERAS, 6, 6)).at[seen_by].add(fnp.einsum("nij,nik->njk", a, a))
    v = fnp.zeros((POINTS, 3, 3)).at[seen].add(fnp.einsum("nij,nik->njk", b, b))
    w = fnp.zeros((CAMERAS, POINTS, 6, 3)).at[seen_by, seen].add(fnp.einsum("nij,nik->njk", a, b))
    slope_c = fnp.zeros((CAMERAS, 6)).at[seen_by].add(fnp.einsum("nij,ni->nj", a, r))
    slope_p = fnp.zeros((POINTS, 3)).at[seen].add(fnp.einsum("nij,ni->nj", b, r))
    u, v = u + damping * u * np.eye(6), v + damping * v * np.eye(3)
    inverse = fnp.linalg.inv(v)
    wv = fnp.einsum("cpij,pjk->cpik", w, inverse)
    schur = -fnp.einsum("cpik,dpjk->cidj", wv, w)
    schur = schur.at[np.arange(CAMERAS), :, np.arange(CAMERAS), :].add(u).reshape(6 * CAMERAS, -1)
    right = (fnp.einsum("cpik,pk->ci", wv, slope_p) - slope_c).ravel()
    # The first camera stays, and the distance of the second: the pictures do not tell place and size of the whole.
    free = np.delete(np.arange(6 * CAMERAS), [*range(6), 11])
    change = (
        fnp.zeros(6 * CAMERAS)
        .at[free]
        .set(fnp.linalg.solve(schur[free][:, free], right[free]))
        .reshape(-1, 6)
    )
    back = fnp.einsum("pij,pj->pi", inverse, -slope_p - fnp.einsum("cpij,ci->pj", w, change))
    return cameras + change, points + back


def adjust(cameras, points, data):
    """Levenberg and Marquardt's method; also the sums of squares along the way."""
    cost = lambda c, p: float(np.sum(residuals(c[data[1]], p[data[2]], data[0]) ** 2))
    costs, damping = [cost(cameras, points)], 1e-3
    while damping < 1e8:
        new = step(cameras, points, *data, damping)
        costs.append(min(cost(*new), costs[-1]))
        if costs[-1] < costs[-2]:
            (cameras, points), damping = new, damping / 5
            if costs[-1] > (1 - 1e-10) * costs[-2]:
                break
        else:
            damping *= 10
    return cameras, points, costs


def scene(rng):
    """Cameras (CAMERAS, 6) on a circle that look at the middle, and points (POINTS, 3) of a trefoil knot."""
    t = np.linspace(0.0, 2 * np.pi, POINTS, endpoint=False)
    knot = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    turns = np.linspace(0.0, 2 * np.pi, CAMERAS, endpoint=False)
    axes = np.stack(
        [0.2 * np.ones(CAMERAS), (turns + np.pi) % (2 * np.pi) - np.pi, np.zeros(CAMERAS)], axis=1
    )
    return np.concatenate([axes, np.tile([0.0, 0.0, 12.0], (CAMERAS, 1))], axis=1), knot + rng.normal(
        0, 0.05, knot.shape
    )


def main():
    rng = np.random.default_rng(0)
    true_cameras, true_points = scene(rng)
    seen_by, seen = np.nonzero(rng.random((CAMERAS, POINTS)) < 0.7)
    exact = residuals(true_cameras[seen_by], true_points[seen], np.zeros((len(seen), 2)))
    pixels = exact + rng.normal(0.0, ERROR, exact.shape)
    moved = np.arange(CAMERAS)[:, None] > 0
    cameras = true_cameras + moved * rng.normal(0.0, [0.03] * 3 + [0.3] * 3, (CAMERAS, 6))
    cameras[1, 5] = true_cameras[1, 5]
    points = true_points + rng.normal(0.0, 0.3, true_points.shape)
    _, found, costs = adjust(cameras, points, (pixels, seen_by, seen))
    freedom = pixels.size - 3 * POINTS - 6 * CAMERAS + 7
    before, after = np.sqrt(costs[0] / pixels.size), np.sqrt(costs[-1] / freedom)
    print(f"{pixels.size} numbers measured, {freedom} more than unknown; {len(costs) - 1} steps")
    print(f"error a pixel: {before:.2f} at the start, {after:.4f} at the end;")
    print(f"true           {ERROR:.4f} +- {ERROR / np.sqrt(2 * freedom):.4f}")
    off = [np.sqrt(np.mean(np.sum((p - true_points) ** 2, axis=1))) for p in (points, found)]
    print(f"points are off by {off[0]:.3f} at the start, {off[1]:.4f} at the end (the knot is 6 wide)")
    return points, found, true_cameras, costs


# %%
# The points at the start and in the end, from above, with the cameras around them; and the sum of squares.


def draw(start, found, cameras, costs):
    import matplotlib.pyplot as plt

    left, middle, right = plt.subplots(1, 3, figsize=(7.6, 3.0))[1]
    for axes, points, title in ((left, start, "points at the start"), (middle, found, "points found")):
        axes.scatter(points[:, 0], points[:, 1], s=3, c=np.arange(POINTS), cmap="twilight")
        axes.set(aspect="equal", title=title, xticks=[], yticks=[], xlim=(-4, 4), ylim=(-4, 4))
        axes.spines[:].set_visible(False)
    right.semilogy(costs, "o-", markersize=4)
    right.set(xlabel="step", ylabel="sum of squares (pixels²)")
    plt.show()


if __name__ == "__main__":
    adjusted = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*adjusted)
