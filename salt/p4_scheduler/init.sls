# Phase 4 is complete: the tree has its features, every daemon of this host runs it and answers, the node is registered.
{%- set daemons = salt['slurm_cluster.daemons']() %}
{%- set database = salt['slurm_database.here']() %}
include:
  - p1_foundation
{%- if database %}
  - p4_scheduler.database
{%- endif %}
{%- for daemon in daemons %}
  - p4_scheduler.{{ 'login' if daemon == 'sackd' else daemon }}
{%- endfor %}

"p4_scheduler: gate":
  saltern.gate:
    - name: p4_scheduler
    - phase: p4_scheduler
    - require:
      - sls: p1_foundation
{%- if daemons or database %}
      - sls: p4_scheduler.*
{%- endif %}
