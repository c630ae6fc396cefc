"""Filters of convolutions in panels: the layout in which register tiles read them."""

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

PANEL = 32
"""Filters of a panel: a multiple of two vectors of any processor."""


def pack_panels(w: AnyArray, panels: AnyArray) -> None:
    """Write panels[i, ..., j] = w[..., 32 * i + j], zeros behind the last filter."""
    for i, panel in enumerate(panels):
        own = w[..., i * PANEL : (i + 1) * PANEL]
        panel[..., : own.shape[-1]] = own
        panel[..., own.shape[-1] :] = 0


def unpack_panels(panels: AnyArray, filters: int) -> AnyArray:
    """Return w[..., t, 32 * i + j] = panels[..., i, t, j] for so many filters."""
    *leading, count, depth, _ = panels.shape
    return np.swapaxes(panels, -3, -2).reshape(*leading, depth, count * PANEL)[..., :filters]
