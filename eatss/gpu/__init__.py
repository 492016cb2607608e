"""GPU profiles: TOML in, ``GpuProfile`` out; what a live card says of itself.

Next folder: ``eatss/model``.
"""

from eatss.gpu.document import profile_from_document, profile_to_document
from eatss.gpu.load import CARDS, list_profiles, profile_directory, profile_provider
from eatss.gpu.profile import FIGURES, GpuProfile, Source
from eatss.gpu.this_machine import load_profile

__all__ = [
    "CARDS",
    "FIGURES",
    "GpuProfile",
    "Source",
    "list_profiles",
    "load_profile",
    "profile_directory",
    "profile_from_document",
    "profile_provider",
    "profile_to_document",
]
