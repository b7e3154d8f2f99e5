# The builder's artefact on this host, unpacked beside older ones; /opt/slurm/current is the active one.
{%- set waits = salt['saltern.view']('waits') %}
{%- set builds = 'builder' in salt['saltern.view']('roles') %}
include:
  - p1_foundation
{%- if builds %}
  - p4_scheduler.build    # a builder would wait for itself
{%- endif %}

"deployed: libraries":
  pkg.installed:
    - name: Slurm's libraries
    - pkgs: {{ salt['saltern.platform']().slurm_runtime | json }}
    - install_recommends: False
    - require:
      - sls: p1_foundation

"deployed: artefact":
  slurm_build.deployed:
    - name: the builder's artefact
    - timeout: {{ waits.artefact_s }}
    - require:
      - pkg: "deployed: libraries"
{%- if builds %}
      - sls: p4_scheduler.build
{%- endif %}

"deployed: active":
  slurm_build.active:
    - name: /opt/slurm/current
    - require:
      - slurm_build: "deployed: artefact"

"deployed: programs on the path":
  file.managed:
    - name: /etc/profile.d/slurm.sh
    - source: salt://p4_scheduler/files/profile.sh
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - sls: p1_foundation
