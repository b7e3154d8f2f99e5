"""A simulated sacctmgr: a model of what the real 24.11.5 was seen to do, for random trees.

It is not Slurm: tests/lab/test_lab_60_accounts.py runs the real one. It is strict where the real
one only grumbles, so that a plan cannot lean on its patience.
"""

from collections.abc import Iterable
from dataclasses import replace

from saltern import sacctmgr_fields as fields
from saltern.sacctmgr_model import ROOT, Account, Resource, Tree, User, ancestors


class Refused(Exception):
    """A call that Slurm would not carry out."""


def parts(words: Iterable[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        assert equals, f"{word!r} has no value"
        assert key not in found, f"{key} twice"
        found[key] = value
    return found


class SimulatedSacctmgr:
    """A cluster's accounting that understands the calls of our plans."""

    def __init__(self, jobs: Iterable[tuple[str, str]] = ()) -> None:
        self.accounts = {
            ROOT: Account("", "default root account", "root", frozenset(), {"qos": "normal"})
        }
        self.users = {ROOT: User(ROOT, "administrator", "", frozenset())}
        self.associations = {(ROOT, ROOT, ""): {}}
        self.qos = {"normal": {}}
        self.resources = {}
        self.jobs = set(jobs)
        self.calls = []

    def read(self) -> Tree:
        """As the reader gives it: of coordinators only those that the account above has not."""
        accounts = {}
        for name, account in self.accounts.items():
            above = {
                who
                for up in ancestors(self.accounts, name)
                if up in self.accounts
                for who in self.accounts[up].coordinators
            }
            mine = frozenset(account.coordinators - above)
            accounts[name] = replace(account, coordinators=mine, settings=dict(account.settings))
        rows = {key: dict(settings) for key, settings in self.associations.items()}
        qos = {name: dict(settings) for name, settings in self.qos.items()}
        return Tree(accounts, dict(self.users), rows, qos, dict(self.resources))

    def call(self, argv: tuple[str, ...]) -> None:
        """One call, whole or not at all. Raises Refused."""
        before = self.read()
        direct = {name: account.coordinators for name, account in self.accounts.items()}
        self.calls.append(argv)
        verb, kind, *words = argv
        try:
            getattr(self, f"_{verb}_{kind}")(words)
        except Refused:
            self.accounts = {
                name: replace(account, coordinators=direct[name])
                for name, account in before.accounts.items()
            }
            self.users, self.qos = dict(before.users), dict(before.qos)
            self.associations, self.resources = dict(before.associations), dict(before.resources)
            raise

    # --- QOS

    def _add_qos(self, words):
        given = parts(words)
        for name in given.pop("name").split(","):
            if name in self.qos:
                raise Refused(f"QOS {name} is there")
            self.qos[name] = self._set(fields.QOS, {}, given)

    def _modify_qos(self, words):
        where, change = self._split(words)
        for name in where["name"].split(","):
            self._known(name in self.qos, name)
            self.qos[name] = self._set(fields.QOS, self.qos[name], change)

    def _delete_qos(self, words):
        for name in self._where(words)["name"].split(","):
            self._known(name in self.qos, name)
            rows = [*self.associations.values(), *(it.settings for it in self.accounts.values())]
            if any(row.get("default_qos") == name for row in rows):
                raise Refused(f"{name} is a default")
            del self.qos[name]
            for settings in [*rows, *self.qos.values()]:
                for key in ("qos", "preempt"):
                    left = [it for it in settings.get(key, "").split(",") if it and it != name]
                    settings.pop(key, None)
                    if left:
                        settings[key] = ",".join(left)

    # --- accounts

    def _add_account(self, words):
        given = parts(words)
        names = given.pop("name").split(",")
        self._cluster(given)
        parent = given.pop("parent", ROOT)
        self._known(parent in self.accounts, parent)
        description = given.pop("Description", None)
        organization = given.pop("Organization", None)
        for name in names:
            if name in self.accounts:
                raise Refused(f"account {name} is there")
            self.accounts[name] = Account(
                parent,
                name if description is None else description,
                (name if parent == ROOT else parent) if organization is None else organization,
                frozenset(),
                self._set(fields.ASSOCIATION, {}, given),
            )

    def _modify_account(self, words):
        where, change = self._split(words)
        self._cluster(where)
        parent = change.pop("parent", None)
        texts = {
            key.lower(): change.pop(key) for key in ("Description", "Organization") if key in change
        }
        names = where.pop("name").split(",")
        for name in names:
            self._known(name in self.accounts, name)
            account = replace(self.accounts[name], **texts)
            if parent is not None:
                self._known(parent in self.accounts, parent)
                if name in (parent, *ancestors(self.accounts, parent)):
                    raise Refused(f"{name} under itself")
                if parent == account.parent:
                    raise Refused("the same parent")
                account = replace(account, parent=parent)
            settings = self._set(fields.ASSOCIATION, account.settings, change)
            self.accounts[name] = replace(account, settings=settings)
        assert not where, where
        if change.keys() & {"QOS", "DefaultQOS"}:
            self._check_below(names)

    def _delete_account(self, words):
        """Takes everything below along, without a word."""
        for name in self._where(words)["name"].split(","):
            self._known(name in self.accounts, name)
            gone = {it for it in self.accounts if name in (it, *ancestors(self.accounts, it))}
            self._drop({key for key in self.associations if key[0] in gone})
            for each in gone:
                del self.accounts[each]

    # --- users

    def _add_user(self, words):
        given = parts(words)
        names = given.pop("name").split(",")
        self._cluster(given)
        if "wckeys" in given:
            listed = given.pop("wckeys").split(",")
            keys = frozenset(listed)
            assert not given, given
            for name in names:
                old = self.users.get(name, User("", "none", "", frozenset()))
                self.users[name] = replace(
                    old, wckeys=old.wckeys | keys, default_wckey=old.default_wckey or listed[0]
                )
            return
        accounts = given.pop("account").split(",")
        partitions = given.pop("partition", "").split(",")
        default = given.pop("defaultaccount", None)
        level = {"Operator": "operator", "Admin": "administrator", None: "none"}[
            given.pop("adminlevel", None)
        ]
        settings = self._set(fields.ASSOCIATION, {}, given)
        for name in names:
            for account in accounts:
                self._known(account in self.accounts, account)
                for partition in partitions:
                    if (account, name, partition) in self.associations:
                        raise Refused("the association is there")
                    self.associations[account, name, partition] = dict(settings)
                    self._check_rows([(account, name, partition)])
            old = self.users.get(name, User("", level, "", frozenset()))
            self.users[name] = replace(
                old, default_account=default or old.default_account or accounts[0]
            )

    def _modify_user(self, words):
        where, change = self._split(words)
        names = where.pop("name").split(",")
        self._cluster(where, optional="adminlevel" in change)
        for name in names:
            self._known(name in self.users, name)
        self._person(names, change)
        if not change:
            assert not where, where
            return
        accounts = where.pop("account").split(",")
        partition = where.pop("partition", None)
        assert not where, where
        rows = [
            key
            for key in self.associations
            if key[1] in names and key[0] in accounts and partition in (None, key[2])
        ]
        self._known({key[1] for key in rows} == set(names), names)
        self._known({key[0] for key in rows} == set(accounts), accounts)
        for key in rows:
            self.associations[key] = self._set(fields.ASSOCIATION, self.associations[key], change)
        if change.keys() & {"QOS", "DefaultQOS"}:
            self._check_rows(rows)

    def _person(self, names, change):
        levels = {"None": "none", "Operator": "operator", "Admin": "administrator"}
        level = change.pop("adminlevel", None)
        default, wckey = change.pop("defaultaccount", None), change.pop("defaultwckey", None)
        for name in names:
            user = self.users[name]
            if level is not None:
                user = replace(user, admin_level=levels[level])
            if default is not None:
                self._known(any(key[:2] == (default, name) for key in self.associations), default)
                user = replace(user, default_account=default)
            if wckey is not None:
                self._known(wckey in user.wckeys, wckey)
                user = replace(user, default_wckey=wckey)
            self.users[name] = user

    def _delete_user(self, words):
        where = self._where(words)
        names = where.pop("name").split(",")
        accounts = where.pop("account", None)
        partition = where.pop("partition", None)
        if accounts is not None:
            self._cluster(where)
        gone = {
            key
            for key in self.associations
            if key[1] in names
            and (accounts is None or key[0] in accounts.split(","))
            and partition in (None, key[2])
        }
        if accounts is None:
            for name in names:
                self._known(name in self.users, name)
        self._drop(gone)
        for name in names:
            if accounts is None:
                self.users.pop(name, None)
                for at, account in self.accounts.items():
                    self.accounts[at] = replace(account, coordinators=account.coordinators - {name})

    def _drop(self, gone):
        """Associations go; refused for jobs, and when a default goes and others stay."""
        if any(key[:2] in self.jobs for key in gone):
            raise Refused("jobs")
        for account, user, _ in gone:
            staying = [key for key in self.associations if key[1] == user and key not in gone]
            if staying and self.users[user].default_account == account:
                raise Refused(f"the default account of {user}")
        for key in gone:
            del self.associations[key]
        for user in {key[1] for key in gone}:
            if not any(key[1] == user for key in self.associations):
                self.users.pop(user, None)
                for at, account in self.accounts.items():
                    self.accounts[at] = replace(account, coordinators=account.coordinators - {user})
        for user in {key[1] for key in gone}:
            if user not in self.users and any(key[1] == user for key in self.associations):
                raise AssertionError("a user without a record")

    # --- coordinators, resources

    def _add_coordinator(self, words):
        self._coordinate(words, lambda old, names: old | names)

    def _delete_coordinator(self, words):
        self._coordinate(words, lambda old, names: old - names)

    def _coordinate(self, words, change):
        given = parts(words)
        names = frozenset(given["names"].split(","))
        for name in names:
            self._known(name in self.users, name)
        for at in given["account"].split(","):
            self._known(at in self.accounts, at)
            account = self.accounts[at]
            self.accounts[at] = replace(account, coordinators=change(account.coordinators, names))

    def _add_resource(self, words):
        given = parts(words)
        key = given["name"], given["server"]
        old = self.resources.get(key, Resource("0", given["name"], "", ""))
        self.resources[key] = Resource(
            given.get("Count", old.count),
            given.get("Description", old.description),
            given.get("ServerType", old.server_type),
            given.get("allowed", old.allowed),
        )

    def _modify_resource(self, words):
        where, change = self._split(words)
        key = where["name"], where["server"]
        self._known(key in self.resources, key)
        self._add_resource(
            [f"name={key[0]}", f"server={key[1]}", *(f"{k}={v}" for k, v in change.items())]
        )

    def _delete_resource(self, words):
        where = self._where(words)
        del self.resources[where["name"], where["server"]]

    # --- what they share

    def _set(self, table, old, change):
        options = {field.option: key for key, field in table.items()}
        new = dict(old)
        for option, said in change.items():
            key = options[option]
            value = self._value(table[key], new.get(key, ""), said)
            for name in (
                value.split(",") if key in ("qos", "default_qos", "preempt") and value else ()
            ):
                self._known(name in self.qos, name)
            new.pop(key, None)
            if value:
                new[key] = value
        return new

    @staticmethod
    def _value(field, old, said):
        if field.kind == "tres":
            kept = dict(word.split("=") for word in old.split(",") if word)
            kept.update(word.split("=") for word in said.split(","))
            return ",".join(f"{it}={n}" for it, n in sorted(kept.items()) if n != "-1")
        return "" if said == field.clear else field.read(said)

    def _effective(self, account):
        for name in (account, *ancestors(self.accounts, account)):
            if self.accounts[name].settings.get("qos"):
                return set(self.accounts[name].settings["qos"].split(","))
        return set()

    def _check_rows(self, keys):
        """No association without its default QOS in its list. Seen: a move does not look."""
        for account, user, partition in keys:
            settings = self.associations[account, user, partition]
            mine = set(settings.get("qos", "").split(",")) - {""} or self._effective(account)
            default = settings.get("default_qos")
            if default and default not in mine:
                raise Refused(f"{account}/{user} loses its default {default}")

    def _check_below(self, names):
        for name, account in self.accounts.items():
            if not set(names) & {name, *ancestors(self.accounts, name)}:
                continue
            default = account.settings.get("default_qos")
            if default and default not in self._effective(name):
                raise Refused(f"account {name} loses its default {default}")
            self._check_rows(key for key in self.associations if key[0] == name)

    @staticmethod
    def _split(words):
        assert words[0] == "where"
        at = words.index("set")
        return parts(words[1:at]), parts(words[at + 1 :])

    @staticmethod
    def _where(words):
        assert words[0] == "where"
        return parts(words[1:])

    @staticmethod
    def _cluster(given, optional=False):
        found = given.pop("cluster", None)
        assert found == "lab" or (optional and found is None), (
            "a call that would reach other clusters"
        )

    @staticmethod
    def _known(found, what):
        if not found:
            raise Refused(f"unknown: {what}")
