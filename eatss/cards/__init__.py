"""GPU profiles: TOML in, ``GpuProfile`` out; what a live card says of itself.

Next folder: ``eatss/choose``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.cards.document import profile_from_document, profile_to_document
    from eatss.cards.load import list_profiles, profile_directory
    from eatss.cards.profile import FIGURES, GpuProfile, Source
    from eatss.cards.this_machine import load_profile

__all__ = [
    "FIGURES",
    "GpuProfile",
    "Source",
    "list_profiles",
    "load_profile",
    "profile_directory",
    "profile_from_document",
    "profile_to_document",
]

__getattr__ = loading_names(
    __name__,
    {
        "FIGURES": "profile",
        "GpuProfile": "profile",
        "Source": "profile",
        "list_profiles": "load",
        "load_profile": "this_machine",
        "profile_directory": "load",
        "profile_from_document": "document",
        "profile_to_document": "document",
    },
)
