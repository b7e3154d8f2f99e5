"""Health checks of one node: reads /etc/nhc/nhc.conf as LBNL NHC does, looks, and changes nothing.

    node_health [--conf FILE] [--json] [--timeout S] [--limit S] [--only CHECK …] [--list]

One file, Python's standard library, no Salt. It knows LBNL NHC's checks by their names (--list) and
refuses any other. A check that could hang runs in a process of its own, with a time of its own, and
is left behind when that is over; so a hung mount delays no other check. A check that cannot run is
a failure with its cause, never a pass.

Exit status: 0 every check passed, 1 one failed, 2 the checks could not be read.
"""

# Starting takes half of the time there is: what few runs need (re, json, pwd) is imported there.
import os
import select
import sys
import time

CONF = "/etc/nhc/nhc.conf"
HUNG = "/run/saltern/health-hung"  # processes that earlier runs left behind
CHECK_S = 10.0  # each check
LIMIT_S = 45.0  # all of them; Slurm kills a health check after 60 s
COMMAND_S = 5  # a command of check_cmd_*, as in LBNL NHC
SLOW_S = 0.2  # after which another worker takes over what waits behind a check
WORKERS = 2
BEGINS_S = 300  # chronyd's time to find its sources
SIGKILL = 9
VARIABLES = {"MAX_SYS_UID": "99", "NHC_AUTH_USERS": "root nobody"}  # LBNL NHC's own
PATH = "/opt/slurm/current/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Bad(Exception):
    """What a check found wrong, in words."""


class Unusable(Exception):
    """A check could not look, in words; no claim about the node."""


# --- the world that checks look at ---


class Node:
    """Where a node's facts are read; a test gives another root."""

    def __init__(self, root="", variables=None):
        self.root = root
        self.variables = dict(VARIABLES, **(variables or {}))
        self._kept = {}

    def path(self, path):
        return self.root + path

    def read(self, path):
        """A file's text; Unusable if it cannot be read."""
        try:
            with open(self.root + path, "rb") as file:
                return file.read().decode(errors="replace")
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}") from None

    def word(self, path):
        """A file's text without blanks around it, None if it cannot be read."""
        try:
            return self.read(path).strip()
        except Unusable:
            return None

    def names(self, path):
        try:
            return sorted(os.listdir(self.root + path))
        except OSError:
            return []

    def once(self, key, make):
        """What several checks of one process share."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def command(self, words, seconds=COMMAND_S):
        """(exit status, output) of a program; Unusable if it cannot be run or does not end."""
        return _command(words, seconds, self.variables.get("PATH", PATH))


def _command(words, seconds, path):
    out, into = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), *((os.POSIX_SPAWN_DUP2, into, n) for n in (1, 2))]
    environment = {"PATH": path, "LC_ALL": "C.UTF-8"}
    try:
        os.environ["PATH"] = path  # where a name without a path is looked for
        pid = os.posix_spawnp(words[0], words, environment, file_actions=actions)
    except OSError as error:
        os.close(out)
        raise Unusable(f"{words[0]}: {error.strerror}") from None
    finally:
        os.close(into)
        os.close(null)
    deadline = time.monotonic() + seconds
    output = b""
    poll = select.poll()
    poll.register(out, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            os.kill(pid, SIGKILL)
            raise Unusable(f"{words[0]} did not end within {seconds} s")
        data = os.read(out, 65536)
        if not data:
            break
        output += data
    os.close(out)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode(errors="replace")


# --- the configuration ---


def matches(text, match):
    """LBNL NHC's match string: a glob, /a regular expression/ or {a range,…}; ! turns it round."""
    if match.startswith("!"):
        return not matches(text, match[1:])
    if len(match) > 1 and match[0] == match[-1] == "/":
        import re

        try:
            return re.search(match[1:-1], text) is not None
        except re.error as error:
            raise Unusable(f"{match}: no regular expression: {error}") from None
    if match.startswith("{") and match.endswith("}"):
        return _in_ranges(text, match[1:-1])
    stars, rest = match.startswith("*"), match.removeprefix("*")
    if not any(char in rest for char in "*?[\\"):  # by far the most
        return text.endswith(rest) if stars else text == rest
    return _glob(match).match(text) is not None


def _in_ranges(name, ranges):
    """As LBNL NHC reads them: one bracket a range, the digits as wide as the wider end; it reads
    no further after a range that it does not know."""
    import re

    one = re.compile(r"[-a-zA-Z0-9_]+[0-9]+[-.a-zA-Z0-9]*")
    range_ = re.compile(r"([-a-zA-Z0-9_]+)\[([0-9]+)-([0-9]+)\]([-.a-zA-Z0-9]*)")
    for part in ranges.split(","):
        found = range_.fullmatch(part)
        if one.fullmatch(part):
            if name == part:
                return True
        elif found:
            before, low, high, after = found.groups()
            width = max(len(low), len(high))
            first, last = sorted((int(low), int(high)))
            digits = name[len(before) : len(name) - len(after)]
            whole = name.startswith(before) and name.endswith(after) and digits.isdecimal()
            if whole and len(digits) == width and first <= int(digits) <= last:
                return True
        elif part:
            return False
    return False


def _glob(glob):
    """bash's pattern as a regular expression."""
    import re

    out, at = "", 0
    while at < len(glob):
        char = glob[at]
        end = glob.find("]", at + 2)
        if char == "*":
            out += ".*"
        elif char == "?":
            out += "."
        elif char == "[" and end > 0:
            out += _one_of(glob[at + 1 : end])
            at = end
        else:
            out += re.escape(char)
        at += 1
    return re.compile(out + r"\Z", re.DOTALL)


def _one_of(inside):
    """A bracket of a glob; a range that runs backwards holds nothing, as in bash."""
    import re

    negated, inside = inside[0] in "!^", inside.lstrip("!^") if inside[0] in "!^" else inside
    chars, at = "", 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            chars += "".join(map(chr, range(ord(inside[at]), ord(inside[at + 2]) + 1)))
            at += 3
        else:
            chars += inside[at]
            at += 1
    if not chars:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{re.escape(chars)}]"


def _assignment(words):
    """(name, value) of a line that only sets a variable, or None."""
    text = " ".join(words[1:] if words[:1] == ["export"] else words)
    name, equals, value = text.partition("=")
    return (name, value) if equals and _is_name(name) else None


def _is_name(text):
    return text.isascii() and text.replace("_", "a").isalnum() and not text[0].isdigit()


class Check:
    """A line of nhc.conf for this node: its name, its arguments, or why it cannot be used."""

    def __init__(self, number, name, arguments, trouble=""):
        self.number, self.name, self.arguments = number, name, arguments
        self.trouble = trouble
        self.target, self.options = "", {}
        spec = CHECKS.get(name)
        if trouble:
            return
        if spec is None:
            self.trouble = "no check that this program knows; --list names them"
            return
        try:
            self.options, self.operands = _options(arguments, spec)
            self.target = _target(spec, self.options, self.operands)
        except Unusable as error:
            self.trouble = str(error)

    @property
    def cause(self):
        """The check and what it looks at, in one word."""
        target = "_".join(self.target.replace("|", " ").split())
        return f"{self.name}({target})" if target else self.name


def configuration(text, host, variables):
    """The checks of a host in the order of the file; assignments go into ``variables``."""
    checks = []
    for number, line in _lines(text):
        if not line or line.startswith("#"):
            continue
        match, bars, check = (part.strip() for part in line.partition("||"))
        if not bars:
            checks.append(Check(number, "nhc.conf", [], f"line {number} has no ||"))
            continue
        try:
            if not match or not check or not matches(host, match):
                continue
        except Unusable as error:
            checks.append(Check(number, "nhc.conf", [], f"line {number}: {error}"))
            continue
        try:
            words = _words(check, variables)
        except Unusable as error:
            checks.append(Check(number, check.split()[0], [], f"line {number}: {error}"))
            continue
        assignment = _assignment(words)
        if assignment:
            variables[assignment[0]] = assignment[1]
        elif words:
            checks.append(Check(number, words[0], words[1:]))
    return checks


def _lines(text):
    """(number, line) as bash's ``read`` gives them: a backslash goes, and one at the end joins."""
    kept, begun = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        begun = begun or number
        at, joins = 0, False
        while "\\" in line[at:]:
            at = line.index("\\", at)
            joins = at == len(line) - 1
            line = line[:at] + line[at + 1 :]  # noqa: PLW2901 - the same line, shorter
            at += 1
        kept += line
        if not joins:
            yield begun, kept.strip(" \t\r")
            kept, begun = "", 0
    if kept:
        yield begun, kept.strip(" \t\r")


_OPERATORS = ";&|<>()"


def _words(text, variables):
    """A check line as the shell splits it: quotes, variables, nothing that would run a program."""
    words, word, quote, at = [], None, "", 0
    while at < len(text):
        char, at = text[at], at + 1
        if quote != "'" and (char == "`" or (char == "$" and text[at : at + 1] == "(")):
            raise Unusable("runs a program inside the line, which this program does not")
        if char == "$" and quote != "'":
            value, at = _variable(text, at, variables)
            word = (word or "") + value
        elif char in ("'", '"') and quote in ("", char):
            quote, word = "" if quote else char, word or ""
        elif quote:
            word += char
        elif char in " \t":
            words, word = words if word is None else [*words, word], None
        elif char in _OPERATORS:
            raise Unusable(f"holds the shell's {char}; one check a line")
        elif char == "#" and word is None:
            break
        else:
            word = (word or "") + char
    if quote:
        raise Unusable(f"a {quote} is not closed")
    return words if word is None else [*words, word]


def _variable(text, at, variables):
    """(value, place after the name) of $NAME or ${NAME}; a lone $ is itself."""
    braces = text[at : at + 1] == "{"
    begin = end = at + braces
    while end < len(text) and (text[end] == "_" or text[end].isalnum()):
        end += 1
    name = text[begin:end]
    if not name or name[0].isdigit():
        return "$", at
    if braces and text[end : end + 1] != "}":
        raise Unusable(f"${{{name}…: this program knows plain variables only")
    return variables.get(name, ""), end + braces


def _options(arguments, spec):
    """({letter: values}, operands) as bash's getopts reads them; the unknown is refused."""
    found, at = {}, 0
    letters = spec.options
    while at < len(arguments) and len(arguments[at]) > 1 and arguments[at][0] == "-":
        word, at = arguments[at], at + 1
        if word == "--":
            break
        if spec.digits and word[1:].isdecimal():
            at -= 1
            break
        place = 1
        while place < len(word):
            letter = word[place]
            place += 1
            where = letters.find(letter)
            if letter == ":" or where < 0:
                raise Unusable(f"-{letter}: not an option here ({spec.refusal})")
            if not letters.startswith(":", where + 1):
                found.setdefault(letter, []).append("")
                continue
            value = word[place:]
            if not value:
                if at == len(arguments):
                    raise Unusable(f"-{letter} wants a value")
                value, at = arguments[at], at + 1
            found.setdefault(letter, []).append(value)
            break
    return found, arguments[at:]


def _target(spec, options, operands):
    """What a check looks at: one option's value, or its first operand."""
    if spec.target == "-":
        return ""
    for letter in spec.target:
        if letter in options:
            return options[letter][0]
    return operands[0] if operands else ""


# --- numbers, strictly ---


def integer(text, what):
    """A decimal or empty limit is no integer: bash would complain, and pass."""
    if not (text and text.isascii() and text.isdigit()):
        raise Unusable(f"{what} is {text!r}; expected an integer")
    return int(text)


def kilobytes(text, what):
    """Kilobytes from 512, 512k, 128MB, 4G; whole numbers only."""
    number, power = _scaled(text.lower().removesuffix("b"), what)
    return number * 1024 ** max(0, power - 1)


def _count(text, what):
    """A number of inodes: 1000, 1k, 2M."""
    number, power = _scaled(text.lower(), what)
    return number * 1024**power


def _scaled(text, what):
    unit = text[-1:] if text and text[-1] in "kmgtpe" else ""
    number = text.removesuffix(unit)
    if not (number and number.isascii() and number.isdigit()):
        raise Unusable(f"{what} is {text!r}; expected an integer, perhaps with k, M, G, T, P or E")
    return int(number), "kmgtpe".index(unit) + 1 if unit else 0


def _size(kb):
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        if kb < 10240 or unit == "TiB":
            return f"{kb} {unit}"
        kb //= 1024
    return ""


# --- checks: files and file systems ---


def _mounts(node):
    """{mount point: (type, source, options)}; of several on one point the last is seen."""
    found = {}
    for line in node.read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        first, last = before.split(" "), after.split(" ")
        point, source = (_plain(text) for text in (first[4], last[1]))
        options = {*first[5].split(","), *last[2].split(",")}
        # Both words can be there: the mount's own is the narrower one.
        mode = "ro" if "ro" in options else "rw"
        listed = [mode, *sorted(options - {"ro", "rw"})]
        found[point] = (last[0], source, ",".join(listed))
    return found


def _plain(text):
    if "\\" not in text:
        return text
    first, *rest = text.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)


def fs_mount(node, options, operands, mode=""):
    points = options.get("f", []) + options.get("F", [])
    wanted = {"t": options.get("t", []), "s": options.get("s", []), "o": options.get("o", [])}
    if not points:  # the older way: mount point, source, type, options
        points = operands[:1]
        for letter, value in zip("sto", operands[1:], strict=False):
            wanted[letter] = [value]
        operands = []
    if not points:
        raise Unusable("names no mount point")
    mounts = node.once("mounts", lambda: _mounts(node))
    for point in [*points, *operands]:
        name = point.rstrip("/") or "/"
        if name not in mounts:
            raise Bad(f"{point} is not mounted")
        kind, source, having = mounts[name]
        if mode and having.split(",")[0] != mode:
            raise Bad(f"{point} is mounted {having.split(',')[0]}; expected {mode}")
        for letter, what, value in (
            ("t", "of type", kind),
            ("s", "from", source),
            ("o", "with", having),
        ):
            for match in wanted[letter]:
                if match and not matches(value, match):
                    raise Bad(f"{point} is mounted {what} {value}; expected {match}")


def fs_mount_rw(node, options, operands):
    fs_mount(node, options, operands, "rw")


def fs_mount_ro(node, options, operands):
    fs_mount(node, options, operands, "ro")


def _filesystem(node, point):
    if (point.rstrip("/") or "/") not in node.once("mounts", lambda: _mounts(node)):
        raise Bad(f"{point} is not mounted")
    try:
        return os.statvfs(node.path(point))
    except OSError as error:
        raise Bad(f"{point}: {error.strerror}") from None


def _needs(operands, least, what):
    if len(operands) < least:
        raise Unusable(f"expected {what}, found {' '.join(operands) or 'nothing'}")


def _percent(text, what):
    return integer(text[:-1], what) if text.endswith("%") else None


def fs_free(node, options, operands):
    _needs(operands, 2, "mount point and least free space")
    point, least = operands[0], operands[1]
    percent = _percent(least, "least free space")
    wanted = kilobytes(least, "least free space") if percent is None else 0
    found = _filesystem(node, point)
    free = found.f_bavail * found.f_frsize // 1024
    used = (found.f_blocks - found.f_bfree) * found.f_frsize // 1024
    share = 100 * free // max(1, free + used)
    if percent is not None and share < percent:
        raise Bad(f"{share} % free on {point} ({_size(free)}); expected {percent} %")
    if percent is None and free < wanted:
        raise Bad(f"{_size(free)} free on {point}; expected {least}")


def fs_used(node, options, operands):
    _needs(operands, 2, "mount point and most used space")
    point, most = operands[0], operands[1]
    percent = _percent(most, "most used space")
    wanted = kilobytes(most, "most used space") if percent is None else 0
    found = _filesystem(node, point)
    free = found.f_bavail * found.f_frsize // 1024
    used = (found.f_blocks - found.f_bfree) * found.f_frsize // 1024
    share = -(-100 * used // max(1, free + used))
    if percent is not None and share >= percent:
        raise Bad(f"{share} % used on {point}; expected less than {percent} %")
    if percent is None and used >= wanted:
        raise Bad(f"{_size(used)} used on {point}; expected less than {most}")


def fs_size(node, options, operands):
    _needs(operands, 2, "mount point, least and most size")
    low, high = (*operands[1:3], "")[:2]
    limits = [kilobytes(text, "size") if text else None for text in (low, high)]
    found = _filesystem(node, operands[0])
    _between(found.f_blocks * found.f_frsize // 1024, *limits, f"size of {operands[0]}", _size)


def _between(value, low, high, what, show=str):
    if low is not None and value < low:
        raise Bad(f"{what} is {show(value)}; expected at least {show(low)}")
    if high is not None and value > high:
        raise Bad(f"{what} is {show(value)}; expected at most {show(high)}")


def fs_inodes(node, options, operands):
    _needs(operands, 2, "mount point, least and most inodes")
    low, high = (*operands[1:3], "")[:2]
    limits = [_count(text, "number of inodes") if text else None for text in (low, high)]
    _between(_filesystem(node, operands[0]).f_files, *limits, f"inodes of {operands[0]}")


def fs_ifree(node, options, operands):
    _needs(operands, 2, "mount point and least free inodes")
    least = _count(operands[1], "least free inodes")
    _between(_filesystem(node, operands[0]).f_favail, least, None, f"free inodes of {operands[0]}")


def fs_iused(node, options, operands):
    _needs(operands, 2, "mount point and most used inodes")
    most = _count(operands[1], "most used inodes")
    found = _filesystem(node, operands[0])
    _between(found.f_files - found.f_ffree, None, most, f"used inodes of {operands[0]}")


def _stat(node, path, follow=True):
    try:
        return os.stat(node.path(path), follow_symlinks=follow)
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from None


# Option of test(1): (what it wants, how the mode shows it)
_KINDS = {"b": 0o060000, "c": 0o020000, "d": 0o040000, "f": 0o100000, "p": 0o010000, "S": 0o140000}
_BITS = {"g": 0o2000, "k": 0o1000, "u": 0o4000}
_ACCESS = {"r": os.R_OK, "w": os.W_OK, "x": os.X_OK}


def file_test(node, options, operands):
    _needs(operands, 1, "a file")
    for path in operands:
        for letter in options or {"e": [""]}:
            found = _stat(node, path, follow=letter not in "hL")
            ok = {
                "a": lambda f: True,
                "e": lambda f: True,
                "h": lambda f: f.st_mode & 0o170000 == 0o120000,
                "L": lambda f: f.st_mode & 0o170000 == 0o120000,
                "s": lambda f: f.st_size > 0,
                "O": lambda f: f.st_uid == os.geteuid(),
                "G": lambda f: f.st_gid == os.getegid(),
                "N": lambda f: f.st_mtime > f.st_atime,
            }.get(letter)
            if letter in _KINDS:
                good = found.st_mode & 0o170000 == _KINDS[letter]
            elif letter in _BITS:
                good = bool(found.st_mode & _BITS[letter])
            elif letter in _ACCESS:
                good = os.access(node.path(path), _ACCESS[letter])
            else:
                good = ok(found)
            if not good:
                raise Bad(f"{path} does not pass test -{letter}")


def file_contents(node, options, operands):
    _needs(operands, 2, "a file and match strings")
    try:
        with open(node.path(operands[0]), errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise Bad(f"{operands[0]}: {error.strerror}") from None
    _all_match(lines, operands[1:], operands[0])


def _all_match(lines, wanted, where):
    """Each match string has its line; one with ! has none."""
    for match in wanted:
        if match.startswith("!"):
            bad = next((line for line in lines if matches(line, match[1:])), None)
            if bad is not None:
                raise Bad(f"{where} has a line that matches {match[1:]}: {bad[:80]}")
        elif not any(matches(line, match) for line in lines):
            raise Bad(f"{where} has no line that matches {match}")


def file_stat(node, options, operands):
    _needs(operands, 1, "a file")
    for path in operands:
        found, now = _stat(node, path), time.time()
        for letter, values in options.items():
            text = values[-1]
            if letter in "ug":
                good = getattr(found, f"st_{letter}id") == integer(text, f"-{letter}")
            elif letter in "UG":
                good = _owner(found, letter) == text
            elif letter in "mM":
                integer(text.replace("8", "x").replace("9", "x"), "mode")
                mode = int(text, 8)
                has = found.st_mode & 0o7777
                good = has == mode if letter == "m" else has & mode == mode
            else:
                stamp = found.st_mtime if letter in "no" else found.st_ctime
                young = now - stamp < integer(text, f"-{letter}")
                good = young if letter in "nN" else not young
            if not good:
                raise Bad(f"{path} does not have -{letter} {text}")


def _owner(found, letter):
    try:
        if letter == "U":
            import pwd

            return pwd.getpwuid(found.st_uid).pw_name
        import grp

        return grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        return ""


# --- checks: hardware ---


def _cpus(text):
    """The numbers of a list of CPUs: 0-3,8."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def hw_cpuinfo(node, options, operands):
    """From /sys, one file a core: the time of /proc/cpuinfo grows with its threads."""
    found = node.once("cpus", lambda: _topology(node))
    for text, (what, value) in zip(operands, found.items(), strict=False):
        if text and value != integer(text, what):
            raise Bad(f"{value} {what}; expected {text}")


def _topology(node):
    base = "/sys/devices/system/cpu"
    online = node.word(f"{base}/online")
    if online and node.word(f"{base}/cpu{_cpus(online)[0]}/topology/physical_package_id"):
        threads = _cpus(online)
        cores = _groups(node, threads, ("core_cpus_list", "thread_siblings_list"))
        sockets = _groups(node, threads, ("package_cpus_list", "core_siblings_list"))
        return {"sockets": sockets, "cores": cores, "threads": len(threads)}
    import re

    blocks = node.read("/proc/cpuinfo").split("\n\n")
    where = [dict(re.findall(r"^(physical id|core id|processor)\s*: (.*)$", b, 8)) for b in blocks]
    where = [cpu for cpu in where if "processor" in cpu]
    core_ids = {(cpu.get("physical id"), cpu.get("core id", cpu["processor"])) for cpu in where}
    packages = {cpu.get("physical id") for cpu in where}
    return {"sockets": len(packages), "cores": len(core_ids), "threads": len(where)}


def _groups(node, threads, names):
    """How many groups of siblings there are: each is read once."""
    seen, count = set(), 0
    for cpu in threads:
        if cpu in seen:
            continue
        base = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        text = node.word(f"{base}/{names[0]}") or node.word(f"{base}/{names[1]}")
        seen.update(_cpus(text) if text else [cpu])
        count += 1
    return count


def _memory(node):
    rows = (line.split() for line in node.read("/proc/meminfo").splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1}


def _of_memory(make, what):
    """A check of kilobytes between two limits, with a tolerance."""

    def check(node, options, operands):
        _needs(operands, 2, "least and most kilobytes")
        value = make(node.once("memory", lambda: _memory(node)))
        low, high = (kilobytes(text, "limit") for text in operands[:2])
        fudge = operands[2] if len(operands) > 2 else "0"
        percent = _percent(fudge, "tolerance")
        slack = kilobytes(fudge, "tolerance") if percent is None else value * percent // 100
        _between(value, max(0, low - slack), high + slack, what, _size)

    return check


def _of_free_memory(make, what):
    def check(node, options, operands):
        _needs(operands, 1, "least kilobytes")
        value = make(node.once("memory", lambda: _memory(node)))
        _between(value, kilobytes(operands[0], "limit"), None, what, _size)

    return check


def _free(memory):
    return memory.get("MemAvailable", memory["MemFree"])


def hw_eth(node, options, operands):
    _needs(operands, 1, "a device")
    for device in operands:
        if device not in node.names("/sys/class/net"):
            raise Bad(f"no device {device}")


def eth_speed(node, options, operands):
    """check_eth_speed DEVICE MBIT: the link is up and has at least this speed."""
    _needs(operands, 2, "a device and Mbit/s")
    device, least = operands[0], integer(operands[1], "speed")
    hw_eth(node, {}, [device])
    state = node.word(f"/sys/class/net/{device}/operstate")
    if state != "up":
        raise Bad(f"{device} is {state}; expected up")
    speed = node.word(f"/sys/class/net/{device}/speed")
    if speed is None or not speed.isdecimal():
        raise Unusable(f"{device} does not tell its speed")
    if int(speed) < least:
        raise Bad(f"{device} has {speed} Mbit/s; expected {least}")


def hw_ib(node, options, operands):
    _needs(operands, 1, "Gbit/s, and perhaps a device")
    rate = integer(operands[0], "rate")
    device, _, port = (operands[1] if len(operands) > 1 else "").partition(":")
    seen = []
    base = "/sys/class/infiniband"
    for name in node.names(base):
        for number in node.names(f"{base}/{name}/ports"):
            if (device and name != device) or (port and number != port):
                continue
            words = [
                node.word(f"{base}/{name}/ports/{number}/{file}") or "unknown"
                for file in ("state", "phys_state", "rate")
            ]
            if "ACTIVE" in words[0] and "LinkUp" in words[1] and words[2].startswith(f"{rate} Gb"):
                return
            seen.append(f"{name}:{number} {', '.join(words)}")
    found = "; ".join(seen) or "no port"
    raise Bad(f"found {found}; expected an active one with {rate} Gbit/s {operands[1:] or ''}")


# --- checks: processes ---


class Process:
    """A process as /proc shows it; what few checks ask for is read when they ask."""

    def __init__(self, node, pid, uid, words):
        self._node, self.pid, self.uid, self.words = node, pid, uid, words

    def _stat(self):
        """(name, what follows it); of one that ended meanwhile, a child of nobody."""
        text = self._node.word(f"/proc/{self.pid}/stat") or "0 () X 0"
        name, _, rest = text.partition("(")[2].rpartition(")")
        return name, rest.split()

    @property
    def name(self):
        return self._stat()[0]

    @property
    def parent(self):
        return int(self._stat()[1][1])

    def first(self):
        """The program, as a process calls itself: ``sshd:`` is sshd."""
        return self.words[0].rstrip(":") if self.words else f"[{self.name}]"


def _processes(node):
    found = {}
    for entry in os.listdir(node.path("/proc")):
        if not entry.isdecimal():
            continue
        base = f"/proc/{entry}"
        try:
            uid = os.stat(node.path(base)).st_uid
            words = node.read(f"{base}/cmdline").rstrip("\0").split("\0")
        except (OSError, Unusable):
            continue  # it ended
        # One that names itself anew has blanks inside its first word.
        words = words[0].split() + words[1:] if words[0] else []
        found[int(entry)] = Process(node, int(entry), uid, words)
    return found


def _uid(name):
    if name.isdecimal():
        return int(name)
    import pwd

    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise Unusable(f"no user {name} on this node") from None


def _running(node, match, user="", full=False):
    uid = _uid(user.lstrip("!")) if user else None
    for process in node.once("processes", lambda: _processes(node)).values():
        text = " ".join(process.words) if full else process.first()
        same = uid is None or (process.uid == uid) != user.startswith("!")
        if same and process.pid != os.getpid() and matches(text, match):
            return process
    return None


def ps_service(node, options, operands):
    _needs(operands, 1, "a service")
    name = options.get("d", operands)[-1]
    match = options.get("m", [f"*{name}"])[-1]
    user = options.get("u", [""])[-1]
    if not _running(node, match, user, "f" in options):
        raise Bad(f"{operands[-1]} does not run" + (f" as {user}" if user else ""))


def ps_daemon(node, options, operands):
    _needs(operands, 1, "a program")
    name, user, arguments = (*operands, "", "")[:3]
    match = f"*{name}*{arguments}*" if arguments else f"*{name}"
    if not _running(node, match, user, bool(arguments)):
        raise Bad(f"{name} does not run" + (f" as {user}" if user else ""))


def ps_blacklist(node, options, operands):
    _needs(operands, 1, "a program")
    name, user, arguments = (*operands, "", "")[:3]
    match = f"*{name}*{arguments}*" if arguments else f"*{name}"
    found = _running(node, match, user, bool(arguments))
    if found:
        raise Bad(f"{name} runs (process {found.pid} of user {found.uid})")


def ps_loadavg(node, options, operands):
    _needs(operands, 1, "limits of 1, 5 and 15 minutes")
    loads = node.read("/proc/loadavg").split()[:3]
    for limit, load, minutes in zip(operands, loads, (1, 5, 15), strict=False):
        if limit and float(load) > integer(limit, f"limit of {minutes} minutes"):
            raise Bad(f"load of {minutes} minutes is {load}; expected at most {limit}")


def _of_users(node):
    """{uid: processes} of users who are no system's, and the uids of those with a job here."""
    processes = node.once("processes", lambda: _processes(node))
    least = integer(node.variables["MAX_SYS_UID"], "MAX_SYS_UID")
    spared = {_uid(name) for name in node.variables["NHC_AUTH_USERS"].split()}
    theirs, with_job = {}, set()
    for process in processes.values():
        if process.uid <= least or process.uid in spared:
            continue
        theirs.setdefault(process.uid, []).append(process)
        if _under_step(process, processes):
            with_job.add(process.uid)
    return theirs, with_job


def _under_step(process, processes):
    seen = set()
    while process and process.pid not in seen:
        if process.name.startswith("slurmstepd"):
            return True
        seen.add(process.pid)
        process = processes.get(process.parent)
    return False


def ps_unauth_users(node, options, operands):
    """Processes of users who have no job on this node."""
    theirs, with_job = _of_users(node)
    _strays([p for uid, found in theirs.items() if uid not in with_job for p in found], operands)


def ps_userproc_lineage(node, options, operands):
    """Processes of users that no job step started."""
    theirs, _ = _of_users(node)
    processes = node.once("processes", lambda: _processes(node))
    strays = [p for found in theirs.values() for p in found if not _under_step(p, processes)]
    _strays(strays, operands)


def _strays(found, actions):
    unknown = sorted(set(actions) - {"log", "syslog", "die", "ignore"})
    if unknown:
        raise Unusable(f"{unknown[0]}: this program only looks (log, syslog, ignore, die)")
    if found and (not actions or "die" in actions):
        shown = ", ".join(f"{p.first()} ({p.pid}, user {p.uid})" for p in found[:3])
        raise Bad(f"{len(found)} stray processes: {shown}")


# --- checks: commands, network, clock ---


def _words_of(options, operands):
    words = options["e"][-1].split() if "e" in options else operands
    if not words:
        raise Unusable("names no command")
    return words, integer(options.get("t", [str(COMMAND_S)])[-1], "-t")


def cmd_output(node, options, operands):
    words, seconds = _words_of(options, operands)
    status, output = node.command(words, seconds)
    wanted = options.get("r", [""])[-1]
    if wanted and status != integer(wanted, "-r"):
        raise Bad(f"{words[0]} ended with {status}; expected {wanted}")
    _all_match(output.splitlines(), options.get("m", []), f"the output of {words[0]}")


def cmd_status(node, options, operands):
    words, seconds = _words_of(options, operands)
    wanted = integer(options.get("r", [""])[-1], "-r")
    status, _ = node.command(words, seconds)
    if status != wanted:
        raise Bad(f"{words[0]} ended with {status}; expected {wanted}")


def net_ping(node, options, operands):
    _needs(operands, 1, "a host")
    flags = [word for letter, values in options.items() for word in (f"-{letter}", values[-1])]
    if "c" not in options:
        flags += ["-c", "1"]
    for host in operands:
        status, output = node.command(["ping", "-q", "-n", *flags, host], int(CHECK_S) - 1)
        if status:
            raise Bad(f"{host} does not answer: {(output.strip() or 'no output').splitlines()[-1]}")


def _age(node, name):
    """Seconds since a program with a file of its process began; for ever if nobody can tell."""
    pid = node.word(f"/run/chrony/{name}.pid") or node.word(f"/run/{name}.pid")
    stat = (node.word(f"/proc/{pid}/stat") or "").rpartition(") ")[2].split()
    uptime = (node.word("/proc/uptime") or "").split()
    if len(stat) < 20 or not uptime:
        return float("inf")
    return float(uptime[0]) - int(stat[19]) / os.sysconf("SC_CLK_TCK")


def clock_offset(node, options, operands):
    """check_clock_offset MS: chronyd is in step, and the clock within so many milliseconds."""
    _needs(operands, 1, "milliseconds")
    most = integer(operands[0], "milliseconds")
    status, output = node.command(["chronyc", "-c", "tracking"])
    fields = output.strip().split(",")
    if status or len(fields) < 14:
        raise Unusable(f"chronyc: {output.strip()[:80] or f'ended with {status}'}")
    if fields[-1] == "Not synchronised":
        if _age(node, "chronyd") < BEGINS_S:
            return  # a node that just booted must not be out of service for that
        raise Bad("the clock is not synchronised")
    found = abs(float(fields[4])) * 1000
    if found > most:
        raise Bad(f"the clock is {found:.0f} ms off; expected at most {most} ms")


# --- checks: GPUs ---


def _smi(node, *words):
    """nvidia-smi's answer, once for all checks that ask the same."""

    def ask():
        status, output = node.command(["nvidia-smi", *words], int(CHECK_S) - 1)
        if status:
            said = (output.strip() or "nothing").splitlines()[-1]
            raise Unusable(f"nvidia-smi ended with {status}: {said[:120]}")
        return output

    return node.once(words, ask)


def _gpus(node, *fields):
    """{GPU's index: {field: value}}"""
    names = ("index", *fields)
    text = _smi(node, f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line]
    if any(len(row) != len(names) for row in rows):
        raise Unusable(f"nvidia-smi: expected {','.join(names)}, found {text[:120]!r}")
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def _unknown(value):
    return value.strip("[] ") in ("N/A", "Not Supported", "")


def gpu_count(node, options, operands):
    _needs(operands, 1, "a number")
    found = len(_gpus(node, "driver_version"))
    if found != integer(operands[0], "number"):
        raise Bad(f"{found} GPUs; expected {operands[0]}")


def gpu_driver(node, options, operands):
    """check_gpu_driver VERSION: library and loaded module both have it (PITFALL 8)."""
    _needs(operands, 1, "a version")
    import re

    found = {gpu["driver_version"] for gpu in _gpus(node, "driver_version").values()}
    module = re.search(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", _module_text(node))
    found.add(module[1] if module else "no module")
    if found != {operands[0]}:
        raise Bad(f"driver {', '.join(sorted(found))}; expected {operands[0]}")


def _module_text(node):
    return node.word("/proc/driver/nvidia/version") or ""


def gpu_memory(node, options, operands):
    """Row remapping that failed or waits for a reset, pages that wait, uncorrected errors since
    the driver was loaded. Corrected errors of the past are no reason."""
    text = _smi(
        node,
        "--query-remapped-rows=gpu_uuid,remapped_rows.pending,remapped_rows.failure",
        "--format=csv,noheader,nounits",
    )
    for line in text.splitlines():
        uuid, pending, failure = (*(cell.strip() for cell in line.split(",")), "", "", "")[:3]
        for value, what in ((failure, "failed"), (pending, "waits for a reset")):
            if not _unknown(value) and value not in ("0", "No"):
                raise Bad(f"{uuid}: row remapping {what}")
    fields = ("retired_pages.pending", "ecc.errors.uncorrected.volatile.total")
    for index, gpu in _gpus(node, *fields).items():
        pages, errors = (gpu[field] for field in fields)
        if not _unknown(pages) and pages not in ("0", "No"):
            raise Bad(f"GPU {index}: retired pages wait for a reset")
        if not _unknown(errors) and integer(errors, "uncorrected errors") > 0:
            raise Bad(f"GPU {index}: {errors} uncorrected ECC errors")


# Errors after which a GPU must not get jobs before a reset or a repair (NVIDIA's Xid catalogue);
# 13, 31, 43, 94 are a job's own.
FATAL_XIDS = {48, 62, 64, 74, 79, 95, 119, 120, 140}


def gpu_xid(node, options, operands):
    """check_gpu_xid [NUMBER …]: none of these since boot."""
    import re

    fatal = {integer(text, "Xid") for text in operands} or FATAL_XIDS
    status, output = node.command(
        ["journalctl", "-k", "-b", "-o", "cat", "--no-pager", "--grep", "NVRM: Xid"], 8
    )
    if status not in (0, 1) or (status == 1 and output.strip() not in ("", "-- No entries --")):
        raise Unusable(f"journalctl ended with {status}: {output.strip()[:120]}")
    for line in output.splitlines():
        found = re.search(r"NVRM: Xid \(([^)]*)\): (\d+)", line)
        if found and int(found[2]) in fatal:
            raise Bad(f"Xid {found[2]} on {found[1]} since boot")


def gpu_nvlink(node, options, operands):
    """check_gpu_nvlink LINKS: each GPU has so many active links."""
    _needs(operands, 1, "a number of links")
    import re

    wanted = integer(operands[0], "links")
    active = {}
    for line in _smi(node, "nvlink", "--status").splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        if gpu:
            current = gpu[1]
            active[current] = 0
        elif re.match(r"\s*Link \d+: [0-9.]+ GB/s", line):
            active[current] += 1
    if not active:
        raise Unusable("nvidia-smi nvlink lists no GPU")
    short = [f"GPU {gpu}: {count}" for gpu, count in active.items() if count != wanted]
    if short:
        raise Bad(f"active links {', '.join(short)}; expected {wanted}")


def gpu_pcie(node, options, operands):
    """check_gpu_pcie WIDTH: lanes of each GPU."""
    _needs(operands, 1, "a width")
    wanted = integer(operands[0], "width")
    for index, gpu in _gpus(node, "pcie.link.width.current").items():
        width = gpu["pcie.link.width.current"]
        if integer(width, "pcie.link.width.current") != wanted:
            raise Bad(f"GPU {index} has {width} PCIe lanes; expected {wanted}")


def nvsmi_healthmon(node, options, operands):
    _smi(node, "-L")


# --- the table of checks ---


class Spec:
    """How a check is called.

    options: letters as for getopts
    target: letters of the options that name what it looks at (else its first operand), - for none
    where: here (it cannot hang), apart (a process of its own), or the name of a shared process
    """

    def __init__(self, function, options="", target="", where="apart", digits=False, acts=False):
        self.function, self.options, self.target = function, options, target
        self.where, self.digits = where, digits
        self.refusal = "this program only looks" if acts else "see docs/health.md"


_MOUNT = {"options": "0t:s:o:f:F:", "target": "fF", "where": "here", "acts": True}
_PS = {"where": "processes"}
_HERE = {"where": "here"}
_ALL = {"where": "here", "target": "-"}
_GPU = {"where": "gpus", "target": "-"}
CHECKS = {
    "check_cmd_output": Spec(cmd_output, "t:r:m:e:", "e"),
    "check_cmd_status": Spec(cmd_status, "t:r:e:", "e"),
    "check_file_contents": Spec(file_contents),
    "check_file_stat": Spec(file_stat, "G:M:N:O:U:g:m:n:o:u:"),
    "check_file_test": Spec(file_test, "abcdefghkprsuwxOGLSN"),
    "check_fs_free": Spec(fs_free),
    "check_fs_ifree": Spec(fs_ifree),
    "check_fs_inodes": Spec(fs_inodes),
    "check_fs_iused": Spec(fs_iused),
    "check_fs_mount": Spec(fs_mount, **_MOUNT),
    "check_fs_mount_ro": Spec(fs_mount_ro, **_MOUNT),
    "check_fs_mount_rw": Spec(fs_mount_rw, **_MOUNT),
    "check_fs_size": Spec(fs_size),
    "check_fs_used": Spec(fs_used),
    "check_hw_cpuinfo": Spec(hw_cpuinfo, **_ALL),
    "check_hw_eth": Spec(hw_eth, **_HERE),
    "check_hw_ib": Spec(hw_ib, **_HERE),
    "check_hw_mem": Spec(_of_memory(lambda m: m["MemTotal"] + m["SwapTotal"], "memory"), **_ALL),
    "check_hw_mem_free": Spec(
        _of_free_memory(lambda m: _free(m) + m["SwapFree"], "free memory"), **_ALL
    ),
    "check_hw_physmem": Spec(_of_memory(lambda m: m["MemTotal"], "physical memory"), **_ALL),
    "check_hw_physmem_free": Spec(_of_free_memory(_free, "free physical memory"), **_ALL),
    "check_hw_swap": Spec(_of_memory(lambda m: m["SwapTotal"], "swap"), **_ALL),
    "check_hw_swap_free": Spec(_of_free_memory(lambda m: m["SwapFree"], "free swap"), **_ALL),
    "check_net_ping": Spec(net_ping, "I:W:c:i:s:t:w:"),
    "check_nvsmi_healthmon": Spec(nvsmi_healthmon, **_GPU),
    "check_ps_blacklist": Spec(ps_blacklist, **_PS),
    "check_ps_daemon": Spec(ps_daemon, **_PS),
    "check_ps_loadavg": Spec(ps_loadavg, **_ALL),
    "check_ps_service": Spec(ps_service, "0fu:d:m:", acts=True, **_PS),
    "check_ps_unauth_users": Spec(ps_unauth_users, target="-", **_PS),
    "check_ps_userproc_lineage": Spec(ps_userproc_lineage, target="-", **_PS),
    # Ours: LBNL NHC gets them from /etc/nhc/scripts/saltern.nhc.
    "check_clock_offset": Spec(clock_offset, target="-"),
    "check_eth_speed": Spec(eth_speed, **_HERE),
    "check_gpu_count": Spec(gpu_count, **_GPU),
    "check_gpu_driver": Spec(gpu_driver, **_GPU),
    "check_gpu_memory": Spec(gpu_memory, **_GPU),
    "check_gpu_nvlink": Spec(gpu_nvlink, **_GPU),
    "check_gpu_pcie": Spec(gpu_pcie, **_GPU),
    "check_gpu_xid": Spec(gpu_xid, **_GPU),
}


# --- running them ---


class Result:
    """What became of a check: no finding is a pass."""

    def __init__(self, check, finding, seconds=0.0):
        self.check, self.finding, self.seconds = check, finding, seconds


def look(check, node):
    """One check, here and now."""
    began = time.monotonic()
    finding = ""
    try:
        CHECKS[check.name].function(node, check.options, check.operands)
    except Bad as error:
        finding = str(error)
    except Unusable as error:
        finding = f"cannot run: {error}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no pass
        finding = f"cannot run: {type(error).__name__}: {error}"
    if finding and "0" in check.options:  # LBNL NHC's -0: told, and no failure
        finding = ""
    return Result(check, finding, time.monotonic() - began)


class Worker:
    """A process that makes the checks it is given, group by group, and tells each result."""

    def __init__(self, node, groups):
        self.doing, self.text, self.begun, self.deadline = [], b"", 0.0, 0.0
        self.slow = self.dead = False
        theirs, self.tasks = os.pipe()
        self.out, mine = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(node, groups, theirs, mine)
        os.close(theirs)
        os.close(mine)

    def _child(self, node, groups, tasks, out):
        """Never returns. It holds nothing of the caller's open: one that hangs must not either."""
        try:
            os.setsid()
            tasks, out = os.dup2(tasks, 200), os.dup2(out, 201)
            os.closerange(0, 200)
            for _ in range(3):
                os.open(os.devnull, os.O_RDWR)  # takes 0, 1 and 2
            while True:
                task = os.read(tasks, 2)
                if not task:
                    break
                for check in groups[int.from_bytes(task, "big")]:
                    result = look(check, node)
                    line = " ".join(result.finding.split())
                    os.write(out, f"{result.seconds:.6f} {line}\n".encode())
        finally:
            os._exit(0)

    def give(self, number, group, budget):
        """Let it make a group of checks."""
        self.doing = list(group)
        self._next(budget)
        os.write(self.tasks, number.to_bytes(2, "big"))

    def _next(self, budget):
        self.slow = False
        self.begun = time.monotonic()
        self.deadline = self.begun + budget

    def read(self, budget):
        """The results that came in."""
        data = os.read(self.out, 65536)
        if not data:
            self.dead = True
            found = [Result(check, "cannot run: its process died") for check in self.doing]
            self.doing = []
            return found
        *lines, self.text = (self.text + data).split(b"\n")
        found = []
        for line in lines:
            seconds, _, finding = line.decode(errors="replace").partition(" ")
            found.append(Result(self.doing.pop(0), finding, float(seconds)))
            self._next(budget)
        return found

    def end(self, finding=""):
        """Send it home, or leave it behind when it hangs: nothing is waited for."""
        first = self.doing[:1]
        found = [Result(check, finding, time.monotonic() - self.begun) for check in first]
        found += [Result(c, f"cannot run: {first[0].cause} hung before it") for c in self.doing[1:]]
        self.doing = []
        with suppress(OSError):
            os.killpg(self.pid, SIGKILL)
        os.close(self.out)
        os.close(self.tasks)
        os.waitpid(self.pid, os.WNOHANG)
        return found


class suppress:
    """Go on after these errors; contextlib's own takes 2 ms to import."""

    def __init__(self, *errors):
        self.errors = errors

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self.errors)


def _where(pid):
    """Where in the kernel a process is, for people; empty if it waits as usual."""
    stat = Node().word(f"/proc/{pid}/stat") or ""
    state = stat.rpartition(") ")[2][:1]
    place = Node().word(f"/proc/{pid}/wchan") or ""
    return f" (state {state}{f' in {place}' if place not in ('', '0') else ''})" if state else ""


def run(checks, node, budget=CHECK_S, limit=LIMIT_S, hung=HUNG):
    """Every check's result, in the order of the checks."""
    end = time.monotonic() + limit
    results, groups = {}, {}
    stuck = _stuck(hung)
    for check in checks:
        if check.trouble:
            results[check] = Result(check, f"cannot run: {check.trouble}")
        elif check.cause in stuck:
            results[check] = Result(check, f"hung: an earlier run of it {stuck[check.cause]}")
        else:
            where = CHECKS[check.name].where
            groups.setdefault(check if where == "apart" else where, []).append(check)
    here = groups.pop("here", [])
    crew = Crew(node, list(groups.values()), budget, end)
    crew.begin()
    for check in here:
        results[check] = look(check, node)
    results.update(crew.finish())
    _remember(hung, stuck, crew.left)
    return [results[check] for check in checks]


class Crew:
    """Few workers while all goes well; one more for each that does not get on, so that what hangs
    holds the others up for a blink and not for its whole time."""

    def __init__(self, node, groups, budget, end):
        self.node, self.groups, self.budget, self.end = node, groups, budget, end
        self.waiting = list(range(len(groups)))
        self.workers, self.results = {}, {}
        self.left = []  # (cause, process) of what hangs
        self.poll = select.poll()

    def begin(self):
        for _ in range(min(WORKERS, len(self.groups))):
            self._hire()

    def _hire(self):
        try:
            worker = Worker(self.node, self.groups)
        except OSError as error:
            if not self.workers:  # nobody is left to do it
                for number in self.waiting:
                    for check in self.groups[number]:
                        self._told([Result(check, f"cannot run: fork: {error.strerror}")])
                self.waiting = []
            return
        self.workers[worker.out] = worker
        self.poll.register(worker.out, select.POLLIN)
        self._give(worker)

    def _give(self, worker):
        if self.waiting:
            number = self.waiting.pop(0)
            worker.give(number, self.groups[number], self.budget)

    def _told(self, results):
        self.results.update((result.check, result) for result in results)

    def finish(self):
        """{check: result} of all groups."""
        while any(worker.doing for worker in self.workers.values()):
            for out, _ in self.poll.poll(self._patience() * 1000):
                worker = self.workers[out]
                self._told(worker.read(self.budget))
                if not worker.doing:
                    self._free(worker)
            self._look_after()
        for worker in self.workers.values():
            worker.end()
        return self.results

    def _free(self, worker):
        """A worker that has done its group, or died over it."""
        if worker.dead:
            self._forget(worker)
            worker.end()
            if self.waiting:
                self._hire()
        else:
            self._give(worker)

    def _patience(self):
        now = time.monotonic()
        busy = [worker for worker in self.workers.values() if worker.doing]
        soon = [min(worker.deadline, self.end) for worker in busy]
        if self.waiting:
            soon += [worker.begun + SLOW_S for worker in busy if not worker.slow]
        return max(0.0, min(soon, default=now) - now)

    def _look_after(self):
        now = time.monotonic()
        for worker in list(self.workers.values()):
            if not worker.doing:
                continue
            if now >= min(worker.deadline, self.end):
                check = worker.doing[0]
                where = _where(worker.pid)
                spent = now - worker.begun
                self._forget(worker)
                self._told(worker.end(f"hung: no answer within {spent:.1f} s{where}"))
                self.left.append((check.cause, worker.pid))
                if self.waiting:
                    self._hire()
            elif self.waiting and not worker.slow and now >= worker.begun + SLOW_S:
                worker.slow = True
                self._hire()

    def _forget(self, worker):
        self.poll.unregister(worker.out)
        del self.workers[worker.out]


def _stuck(path):
    """{cause: since when} of checks that an earlier run left behind and that still hang."""
    found = {}
    for line in (Node().word(path) or "").splitlines():
        pid, born, moment, cause = (line.split(" ", 3) + [""] * 4)[:4]
        if cause and _born(pid) == born:
            found[cause] = Stuck(pid, born, moment)
    return found


class Stuck:
    """A process that an earlier run left behind."""

    def __init__(self, pid, born, moment):
        self.pid, self.born, self.moment = pid, born, moment

    def __str__(self):
        hours = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(int(self.moment)))
        return f"has not ended since {hours}{_where(self.pid)}"


def _born(pid):
    """When a process started, as the kernel counts; None if it ended (a zombie did)."""
    stat = (Node().word(f"/proc/{pid}/stat") or "").rpartition(") ")[2].split()
    return None if len(stat) < 20 or stat[0] in "ZX" else stat[19]


def _remember(path, stuck, left):
    lines = [f"{one.pid} {one.born} {one.moment} {cause}" for cause, one in stuck.items()]
    for cause, pid in left:
        born = _born(pid)
        if born:
            lines.append(f"{pid} {born} {int(time.time())} {cause}")
    try:
        if lines:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            with open(path, "w") as file:
                file.write("\n".join(lines) + "\n")
        elif os.path.exists(path):
            os.unlink(path)
    except OSError:
        pass  # not root, or a full disk: the next run finds out anew


# --- the program ---


def table(results):
    """For people."""
    rows = [("check", "looks at", "result", "ms", "finding")]
    for one in results:
        word = "FAILED" if one.finding else "passed"
        spent = f"{one.seconds * 1000:.1f}"
        rows.append((one.check.name, one.check.target, word, spent, one.finding))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    failed = sum(1 for one in results if one.finding)
    return "\n".join([*lines, "", f"{len(results)} checks, {failed} failed"])


def as_json(results, host):
    """For programs."""
    import json

    checks = [
        {
            "check": one.check.name,
            "target": one.check.target,
            "cause": one.check.cause,
            "passed": not one.finding,
            "finding": one.finding,
            "seconds": round(one.seconds, 6),
            "line": one.check.number,
        }
        for one in results
    ]
    return json.dumps({"node": host, "passed": all(c["passed"] for c in checks), "checks": checks})


def arguments(words):
    """The command line as a dictionary; a message for a wrong one."""
    found = {"conf": CONF, "json": False, "list": False, "only": [], "root": ""}
    found |= {"timeout": CHECK_S, "limit": LIMIT_S, "hung": HUNG, "host": ""}
    words = list(words)
    while words:
        word = words.pop(0)
        name = word[2:]
        if word in ("-h", "--help"):
            return None, __doc__
        if word in ("--json", "--list"):
            found[name] = True
        elif word == "--only":
            found["only"], words = words, []
        elif word.startswith("--") and name in found and words:
            value = words.pop(0)
            try:
                found[name] = float(value) if name in ("timeout", "limit") else value
            except ValueError:
                return None, f"{word} {value}: expected seconds"
        else:
            return None, f"{word}: found an unknown word; expected --conf, --json, --list, --only"
    return found, ""


def main(words):
    """Exit status of a run."""
    asked, message = arguments(words)
    if asked is None:
        print(message, file=sys.stderr)
        return 0 if message == __doc__ else 2
    if asked["list"]:
        print("\n".join(sorted(CHECKS)))
        return 0
    variables = {}
    node = Node(asked["root"])
    host = asked["host"] or node.word("/proc/sys/kernel/hostname") or os.uname().nodename
    variables |= {"HOSTNAME": host, "HOSTNAME_S": host.partition(".")[0]}
    if asked["only"]:
        text = "* || " + " ".join(f"'{word}'" for word in asked["only"])
    else:
        try:
            with open(asked["conf"], encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as error:
            print(f"{asked['conf']}: {error.strerror}", file=sys.stderr)
            return 2
    checks = configuration(text, host, variables)
    node.variables.update(variables)
    results = run(checks, node, asked["timeout"], asked["limit"], asked["hung"])
    print(as_json(results, host) if asked["json"] else table(results), flush=True)
    return 1 if any(one.finding for one in results) else 0


def program():
    """The end of the program too: an interpreter that ends tidily takes longer."""
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    program()
