# The plan goes to the external pillar, which gives each minion its own view of it (etc/master.d/saltern.conf).
base:
  '*':
    - plan
