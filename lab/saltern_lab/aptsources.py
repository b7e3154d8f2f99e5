"""The machine's own apt sources, read and turned into a host's: pure text, no commands.

No registry is named in this repository: a lab's hosts use what the machine itself uses, with the
suite's code name swapped. Third-party sources are left out: only entries whose suite is the
machine's release (or its updates and security suites) and whose components hold `main` are Debian
itself.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from saltern_lab.errors import LabError

ACQUIRE_KEPT = re.compile(
    r"Acquire::(Check-Valid-Until|Check-Date|Max-ValidTime|Min-ValidTime|Retries|Languages"
    r"|AllowInsecureRepositories|AllowWeakRepositories|AllowDowngradeToInsecureRepositories"
    r"|IndexTargets::deb::DEP-11[a-z0-9-]*::DefaultEnabled)(::.*)?"
)
APT_LINE = re.compile(r'^(\S+) "(.*)";$')


@dataclass(frozen=True)
class Source:
    """One apt entry: where, which suite, which parts, which key."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None

    @property
    def plain_uri(self) -> str:
        """The address that hosts use: always http, because the lab's mirror does the rest."""
        return re.sub(r"^https:", "http:", self.uri.rstrip("/"))


def parse_one_line(text: str) -> list[Source]:
    """Entries of a sources.list file (`deb [options] uri suite component…`)."""
    found = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match:
            options = dict(o.split("=", 1) for o in (match[1] or "").split() if "=" in o)
            found.append(
                Source(match[2], match[3], tuple(match[4].split()), options.get("signed-by"))
            )
    return found


def parse_deb822(text: str) -> list[Source]:
    """Entries of a .sources file (paragraphs of `Key: value`)."""
    found = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fields = _fields(paragraph)
        if fields.get("enabled", "yes").lower() in {"no", "false", "0"}:
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                parts = tuple(fields.get("components", "").split())
                key = fields.get("signed-by")
                # An inline key block has no file to copy: the archive's own keyring then decides.
                inline = key is not None and "\n" in key
                found.append(Source(uri, suite, parts, None if inline else key))
    return found


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = ""
    for line in paragraph.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] in " \t":
            fields[key] = f"{fields.get(key, '')}\n{line.strip()}"
        elif ":" in line:
            key, value = line.split(":", 1)
            key = key.strip().lower()
            fields[key] = value.strip()
    return fields


def parse_files(files: Mapping[str, str]) -> list[Source]:
    """All entries of the machine, from its files by name (as apt reads them)."""
    found = []
    for name in sorted(files):
        if name.endswith(".sources"):
            found += parse_deb822(files[name])
        elif name.endswith(".list"):
            found += parse_one_line(files[name])
    return found


def translate(
    sources: Iterable[Source], release: str, suite: str, components: Iterable[str]
) -> list[Source]:
    """The same archives for another suite, with these components; one entry an archive and suite.

    `release` is the machine's own code name. Raises LabError when nothing of Debian itself is left.
    """
    found: dict[tuple[str, str], Source] = {}
    for source in sources:
        match = re.fullmatch(rf"{re.escape(release)}(-updates|-security)?", source.suite)
        if match is None or "main" not in source.components:
            continue
        if urlsplit(source.uri).scheme not in {"http", "https"}:
            continue
        entry = replace(source, suite=suite + (match[1] or ""), components=tuple(components))
        found.setdefault((entry.plain_uri, entry.suite), entry)
    if not any(entry.suite == suite for entry in found.values()):
        raise LabError(
            f"The machine's apt sources name no http archive of Debian {release}, so the lab does "
            f"not know where to get Debian {suite} from."
        )
    return list(found.values())


def render(sources: Iterable[Source], kind: str = "deb", *, plain: bool = True) -> str:
    """One-line entries of these sources (`kind` deb or deb-src)."""
    lines = []
    for source in sources:
        option = f"[signed-by={source.signed_by}] " if source.signed_by else ""
        uri = source.plain_uri if plain else source.uri
        lines.append(f"{kind} {option}{uri} {source.suite} {' '.join(source.components)}")
    return "".join(f"{line}\n" for line in lines)


def kept_settings(dump: str) -> list[str]:
    """The Acquire settings to carry into a host, from `apt-config dump`.

    Proxies are not among them: the lab's mirror uses them, hosts use the mirror.
    """
    kept = []
    for line in dump.splitlines():
        match = APT_LINE.match(line)
        if match and ACQUIRE_KEPT.fullmatch(match[1]):
            name = re.sub(r"::[0-9]*$", "::", match[1]) if match[1].endswith("::") else match[1]
            kept.append(f'{name} "{match[2]}";')
    return kept


def proxy(dump: str) -> str | None:
    """The machine's own apt proxy for http, if it has one."""
    for line in dump.splitlines():
        match = APT_LINE.match(line)
        if match and match[1] == "Acquire::http::Proxy" and match[2] not in {"", "DIRECT"}:
            return match[2]
    return None
