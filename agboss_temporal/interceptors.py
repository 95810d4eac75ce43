"""The interceptors, for those who wire a worker by hand instead of with the plugin."""

from __future__ import annotations

from agboss_temporal_interceptors import CompensationInterceptor

__all__ = ["CompensationInterceptor"]
