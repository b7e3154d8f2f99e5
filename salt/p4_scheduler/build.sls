# The builder makes the artefact once, and serves it to the cluster. Compilers come only when there is something to build.
{%- set nginx = salt['saltern.platform']().nginx %}
{%- set build = salt['saltern.view']('build') %}
include:
  - p1_foundation

"build: user":
  user.present:
    - name: saltern-build
    - home: /var/lib/saltern/build
    - createhome: False
    - shell: /usr/sbin/nologin
    - system: True
    - require:
      - sls: p1_foundation

"build: folder of the builder":
  file.directory:
    - name: /var/lib/saltern/build
    - user: saltern-build
    - group: saltern-build
    - mode: '0700'
    - makedirs: True
    - require:
      - user: "build: user"

{%- for path in ['/var/lib/saltern/artefacts', '/opt/slurm'] %}
"build: folder {{ path }}":
  file.directory:
    - name: {{ path }}
    - user: root
    - group: root
    - mode: '0755'
    - makedirs: True
    - require:
      - sls: p1_foundation
{%- endfor %}

"build: packages":
  pkg.installed:
    - name: build packages
    - pkgs: {{ salt['slurm_build.packages']() | json }}
    - install_recommends: False
    - onlyif:
      - fun: slurm_build.needed
    - require:
      - sls: p1_foundation

"build: artefact":
  slurm_build.built:
    - name: hwloc, PMIx and Slurm
    - require:
      - pkg: "build: packages"
      - file: "build: folder of the builder"
      - file: "build: folder /var/lib/saltern/artefacts"
      - file: "build: folder /opt/slurm"
      # It tells the hosts where the artefact is; from then on they ask the server.
      - service: "build: server runs"

"build: server":
  pkg.installed:
    - name: {{ nginx.package }}
    - install_recommends: False
    - require:
      - sls: p1_foundation

{%- if nginx.default_site %}
"build: no default site":
  file.absent:
    - name: {{ nginx.default_site }}
    - require:
      - pkg: "build: server"
    - watch_in:
      - service: "build: server runs"
{%- endif %}

"build: server's configuration":
  file.managed:
    - name: /etc/nginx/conf.d/saltern.conf
    - source: salt://p4_scheduler/files/nginx.conf
    - template: jinja
    - context:
        port: {{ build.port }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "build: server"

"build: server runs":
  service.running:
    - name: {{ nginx.service }}
    - enable: True
    - watch:
      - file: "build: server's configuration"
