# munge with the cluster's key: key and folders stand before the package, so munged never starts with a key of its own.
{%- set platform = salt['saltern.platform']().munge %}
{%- set munge = salt['saltern.view']('foundation:munge') %}
include:
  - p1_foundation.accounts
  - p1_foundation.packages

{%- for path, mode in platform.directories | dictsort %}
"munge: folder {{ path }}":
  file.directory:
    - name: {{ path }}
    - user: munge
    - group: munge
    - mode: '{{ mode }}'
    - require:
      - sls: p1_foundation.accounts
    - require_in:
      - pkg: "munge: package"
{%- endfor %}

"munge: key":
  secret.file:
    - name: /etc/munge/munge.key
    - text: <secret:munge_key>
    - user: munge
    - group: munge
    - mode: '0400'
    - require:
      - file: "munge: folder /etc/munge"

"munge: package":
  pkg.installed:
    - name: {{ platform.package }}
    - require:
      - secret: "munge: key"
      - sls: p1_foundation.packages

# A drop-in, because the options file belongs to the package and is spelt differently in each family.
"munge: options":
  file.managed:
    - name: /etc/systemd/system/munge.service.d/saltern.conf
    - source: salt://p1_foundation/files/munge.service.conf
    - template: jinja
    - context:
        threads: {{ munge.threads }}
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - require:
      - sls: p1_foundation.accounts

# Compared with its files, not watched: a watch forgets when a run is cut between the key and the daemon.
"munge: daemon":
  daemon.current:
    - name: {{ platform.service }}
    - files:
      - /etc/munge/munge.key
      - /etc/systemd/system/munge.service.d/saltern.conf
    - require:
      - pkg: "munge: package"
      - secret: "munge: key"
      - file: "munge: options"
