"""Python's collector of cycles, told to look less often.

A batch makes tens of thousands of values that die with it and hardly a cycle among them, while caches keep tens of thousands more
alive. With the interpreter's defaults, looking through all of these costs settling a third of its time and ticking a sixth.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping

from foliot.settings import FILE_SUFFIX, TABLE

YOUNG, MIDDLE, OLD = 50_000, 20, 50


def tune_garbage_collector() -> None:
    """What exists by now lasts as long as the process and is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """What jobs' own code may see of our environment."""
    hidden = {name for row in TABLE if row.secret for name in (row.env, row.env + FILE_SUFFIX)}
    return {name: value for name, value in environ.items() if name not in hidden}
