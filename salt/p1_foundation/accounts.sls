# munge and slurm have the plan's ids before any package could choose others; then the plan's local users.
{%- set system = salt['saltern.view']('foundation:system_accounts') %}
{%- set users = salt['saltern.view']('foundation:users') %}
include:
  - p0_plan

"accounts: munge":
  system_account.present:
    - name: munge
    - uid: {{ system.munge.uid }}
    - gid: {{ system.munge.gid }}
    - home: /var/lib/munge
    - shell: /usr/sbin/nologin
    - createhome: False
    - require:
      - sls: p0_plan

"accounts: slurm":
  system_account.present:
    - name: slurm
    - uid: {{ system.slurm.uid }}
    - gid: {{ system.slurm.gid }}
    - home: /var/lib/slurm
    - shell: /usr/sbin/nologin
    - createhome: False
    - require:
      - sls: p0_plan

{%- for name, account in users | dictsort %}
"accounts: user {{ name }}":
  system_account.present:
    - name: {{ name }}
    - uid: {{ account.uid }}
    - gid: {{ account.gid }}
    - home: /home/{{ name }}
    - shell: /bin/bash
    - createhome: True
    - require:
      - sls: p0_plan
{%- endfor %}
