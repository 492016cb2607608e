"""A hook of MkDocs: what pages link to in the repository becomes part of the site.

The folder ``docs`` lies over the root of the repository: ``docs/model.md`` is the page
``model.md``, and a link from it to ``../kernels/README.md`` leads to the page
``kernels/README.md``. So links in the files work on disk, in a viewer of the repository, and in the
built site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "gpu_profiles/README.md", "kernels/README.md")
"""Pages of the navigation that lie outside of ``docs``."""

_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file of the repository that a page links to, and what those pages link to."""
    waiting = [file for file in files.documentation_pages() if file.abs_src_path]
    there = [name for name in PAGES if (REPOSITORY / name).is_file()]
    waiting += [_added(name, files, config) for name in there]
    while waiting:
        page = waiting.pop()
        for name in _linked(page):
            if files.get_file_from_path(_in_site(name)) is None:
                added = _added(name, files, config)
                if added.is_documentation_page():
                    waiting.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where the files are in the site."""
    del config, files
    here = _in_repository(page.file.src_uri)

    def relinked(match: re.Match[str]) -> str:
        """Return the same link as the site needs it."""
        name = _target(here, match[2])
        if name is None:
            return match[0]
        start = posixpath.dirname(page.file.src_uri) or "."
        to = posixpath.relpath(_in_site(name), start)
        return f"{match[1]}{to}{match[3] or ''}{match[4]}"

    done, at = [], 0
    for fence in _FENCE.finditer(markdown):
        done += [_LINK.sub(relinked, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*done, _LINK.sub(relinked, markdown[at:])])


def _linked(page: File) -> set[str]:
    """Return the files and folders of the repository that a page links to."""
    text = _FENCE.sub("", page.content_string)
    here = _in_repository(page.src_uri)
    found = {_target(here, match[2]) for match in _LINK.finditer(text)}
    return {name for name in found if name is not None and not name.startswith("docs/")}


def _target(here: str, link: str) -> str | None:
    """Return what a link in a file leads to, by its name in the repository."""
    if re.match(r"[a-z]+:", link):
        return None
    name = posixpath.normpath(posixpath.join(posixpath.dirname(here), link))
    return name if (REPOSITORY / name).exists() else None


def _in_repository(uri: str) -> str:
    return f"docs/{uri}" if (REPOSITORY / "docs" / uri).exists() else uri


def _in_site(name: str) -> str:
    if (REPOSITORY / name).is_dir():
        return f"{name}/README.md"
    return name.removeprefix("docs/")


def _added(name: str, files: Files, config: MkDocsConfig) -> File:
    """Add a file of the repository; a folder without a page of its own gets a list of its files."""
    uri, path = _in_site(name), REPOSITORY / _in_site(name)
    if path.is_file():
        file = File.generated(config, uri, abs_src_path=str(path))
    else:
        file = File.generated(config, uri, content=_listing(REPOSITORY / name))
    files.append(file)
    return file


def _listing(folder: Path) -> str:
    names = sorted(one.name for one in folder.iterdir() if one.is_file())
    lines = "".join(f"- [{name}]({name})\n" for name in names)
    return f"# {folder.relative_to(REPOSITORY)}\n\n{lines}"
