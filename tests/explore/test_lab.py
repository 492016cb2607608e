"""Variants are made and measured in threads; what fails in one is raised where it is waited for."""

from __future__ import annotations

from typing import NoReturn

import pytest

from eatss.diagnostics import InputError, input_error
