# LBNL NHC from the plan's archive, for the provider lbnl. It only tells: the drain logic is ours.
include:
  - p4_scheduler

"lbnl: what it needs":
  pkg.installed:
    - name: What LBNL NHC runs
    - pkgs: {{ salt['saltern.platform']().nhc | json }}
    - install_recommends: False
    - require:
      - sls: p4_scheduler

"lbnl: program":
  nhc_lbnl.installed:
    - name: LBNL NHC
    - require:
      - pkg: "lbnl: what it needs"

"lbnl: checks of ours":
  file.managed:
    - name: /etc/nhc/scripts/saltern.nhc
    - source: salt://p5_environment/files/saltern.nhc
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - nhc_lbnl: "lbnl: program"
