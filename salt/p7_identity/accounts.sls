# Accounts, users, QOS and limits are the plan's; then, and only then, Slurm enforces them. Lowered, it is by phase 4 already.
{%- set source = salt['saltern.view']('directory:kind') %}
{%- set accounts = salt['saltern.view']('accounts') %}
include:
  - p4_scheduler
  - p7_identity.client

{%- if accounts.reconciles %}
{%- if accounts.from_directory %}
"accounts: groups of the directory":
  directory_groups.known:
    - name: the directory's groups
    - timeout: {{ salt['saltern.view']('waits:directory_s') }}
    - require:
      - sls: p7_identity.client
    - require_in:
      - sacctmgr: "accounts: tree"
{%- endif %}

"accounts: tree":
  sacctmgr.managed:
    - name: Slurm's accounting
    - require:
      - sls: p4_scheduler
      {%- if source != 'none' %}
      - sls: p7_identity.client
      {%- endif %}

"accounts: reservations":
  slurm_reservation.managed:
    - name: the plan's reservations
    - require:
      - sacctmgr: "accounts: tree"
{%- else %}
# The tree is another controller's work; this one may not enforce it before it is there.
"accounts: tree":
  slurm_controller.enforced:
    - name: the first controller
    - timeout: {{ salt['saltern.view']('waits:accounts_s') }}
    - require:
      - sls: p4_scheduler
{%- endif %}

"accounts: enforced by slurm.conf":
  slurm_conf.managed:
    - name: /etc/slurm
    - raised: True
    - require:
      - {{ 'sacctmgr' if accounts.reconciles else 'slurm_controller' }}: "accounts: tree"

"accounts: enforced by the running controller":
  slurm_controller.applied:
    - name: slurmctld, with what it enforces
    - raised: True
    - require:
      - slurm_conf: "accounts: enforced by slurm.conf"
