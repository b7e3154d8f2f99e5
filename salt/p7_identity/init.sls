# Phase 7 is complete: the directory's users resolve, Slurm's accounting equals the plan and is enforced.
{%- set source = salt['saltern.view']('directory:kind') %}
{%- set before = salt['saltern.phase_before']('p7_identity') %}
include:
  - {{ before }}
  - p7_identity.{{ 'client' if salt['slurm_cluster.daemons']() else 'server' }}

"p7_identity: gate":
  saltern.gate:
    - name: p7_identity
    - phase: p7_identity
    - require:
      - sls: {{ before }}
      {%- if source != 'none' or 'controller' in salt['saltern.view']('roles') %}
      - sls: p7_identity.*
      {%- endif %}
