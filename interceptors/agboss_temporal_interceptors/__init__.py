"""Temporal interceptors that record named calls and unwind runs (see agboss_temporal)."""

from __future__ import annotations

from agboss_temporal_interceptors.interceptor import CompensationInterceptor

__all__ = ["CompensationInterceptor"]
