# The plan is compiled apart, under an id that no minion can have; each minion gets its own view of it from the external
# pillar (etc/master.d/saltern.conf). Pillar of a site's own goes to minions through a top file in its own pillar root.
base:
  'saltern/plan':
    - plan
  'saltern/accounts':    # only for the hosts that work with users; a site with few of them has no such file
    - ignore_missing: True
    - accounts
