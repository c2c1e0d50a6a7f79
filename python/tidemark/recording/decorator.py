"""Ranges as decorators: ``@tidemark.step()``, ``@tidemark.range("evaluation")``."""

from __future__ import annotations

import functools
import inspect
from contextlib import AbstractContextManager
from typing import Any, Callable, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def decorator(context: AbstractContextManager[Any]) -> Callable[[Function], Function]:
    """Wraps functions in the context, which can be entered any number of times. Coroutines are in it while they run."""

    def decorate(function: Function) -> Function:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped_coroutine(*args: Any, **kwargs: Any) -> Any:
                with context:
                    return await function(*args, **kwargs)

            return wrapped_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with context:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorate
