# The directory as LDIF, daily, on each of its servers; the oldest go.
{%- set directory = salt['saltern.view']('directory') %}
include:
  - p7_identity.server

"backup: folder":
  file.directory:
    - name: /var/backups/saltern-directory
    - user: root
    - group: root
    - mode: '0700'
    - makedirs: True
    - require:
      - sls: p7_identity.server

"backup: program":
  file.managed:
    - name: /usr/lib/saltern/directory_backup
    - source: salt://p7_identity/files/directory_backup
    - template: jinja
    - context:
        base: {{ directory.base }}
        keep: {{ directory.backups }}
    - user: root
    - group: root
    - mode: '0755'
    - makedirs: True
    - require:
      - file: "backup: folder"

{%- for kind in ('service', 'timer') %}
"backup: {{ kind }}":
  file.managed:
    - name: /etc/systemd/system/saltern-directory-backup.{{ kind }}
    - source: salt://p7_identity/files/directory_backup.{{ kind }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - file: "backup: program"
{%- endfor %}

"backup: runs daily":
  service.running:
    - name: saltern-directory-backup.timer
    - enable: True
    - require:
      - file: "backup: service"
      - file: "backup: timer"
