"""Where an interceptor of ours stands among others: inside those that trace, outside the rest.

A tracing interceptor that is registered on a worker would stand inside, because ours is put first.
Then its span of the run would be over, and its context gone, before an unwind begins, and the span
of an activity would not have begun yet where ours describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_TRACING: Final = "temporalio.contrib.opentelemetry"


def place(next: Any, make: Callable[[Any], Any]) -> Any:
    """Put an interceptor into a chain.

    Args:
        next: The first interceptor of the chain; each has the one after it as ``next``.
        make: Makes ours, given the one after it.

    Returns:
        The first interceptor of the chain that there is then.
    """
    above, found = None, next
    while found is not None and not _traces(found):
        above, found = found, getattr(found, "next", None)
    if found is None:
        return make(next)
    if above is None:
        found.next = place(found.next, make)
    else:
        above.next = found.next
        found.next = place(next, make)
    return found


def _traces(interceptor: object) -> bool:
    return any(cls.__module__.startswith(_TRACING) for cls in type(interceptor).__mro__)
