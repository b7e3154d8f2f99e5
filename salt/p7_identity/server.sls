# A directory server: OpenLDAP with the plan's users and groups, copied between all servers, backed up daily.
{%- set directory = salt['saltern.view']('directory') %}
{%- set certificates = salt['saltern.view']('certificates') %}
{%- set ldap = salt['saltern.platform']().openldap %}
{%- set before = salt['saltern.phase_before']('p7_identity') %}
include:
  - {{ before }}
  - p7_identity.authority

{%- if ldap.preseed %}
"server: debconf":
  pkg.installed:
    - name: debconf-utils
    - require:
      - sls: {{ before }}

# The package's own configuration would have its own base and password.
"server: no configuration of the package's":
  debconf.set:
    - name: slapd
    - data: {{ ldap.preseed | json }}
    - require:
      - pkg: "server: debconf"
    - require_in:
      - pkg: "server: packages"
{%- endif %}

"server: packages":
  pkg.installed:
    - name: {{ ldap.packages[0] }}
    - pkgs: {{ ldap.packages | json }}
    - require:
      - sls: {{ before }}

"server: folder of certificates":
  file.directory:
    - name: {{ ldap.tls }}
    - user: root
    - group: {{ ldap.user }}
    - mode: '0750'
    - require:
      - pkg: "server: packages"

{%- for name, text in certificates | dictsort %}
"server: {{ name }}.pem":
  file.managed:
    - name: {{ ldap.tls }}/{{ name }}.pem
    - contents: {{ text | json }}
    - user: root
    - group: {{ ldap.user }}
    - mode: '0644'
    - require:
      - file: "server: folder of certificates"
{%- endfor %}

"server: key":
  secret.file:
    - name: {{ ldap.tls }}/server.key
    - text: "<secret:directory_key>\n"
    - user: root
    - group: {{ ldap.user }}
    - mode: '0640'
    - require:
      - file: "server: folder of certificates"

"server: first configuration":
  directory.prepared:
    - name: slapd
    - require:
      - pkg: "server: packages"

"server: slapd":
  daemon.current:
    - name: {{ ldap.service }}
    - port: 389
    - files:
      - {{ ldap.tls }}/ca.pem
      - {{ ldap.tls }}/server.pem
      - {{ ldap.tls }}/server.key
    - require:
      - directory: "server: first configuration"
      - file: "server: ca.pem"
      - file: "server: server.pem"
      - secret: "server: key"

"server: configuration":
  directory.configured:
    - name: cn=config
    - require:
      - daemon: "server: slapd"

{%- if directory.writes %}
"server: users and groups":
  directory.populated:
    - name: {{ directory.base }}
    - require:
      - directory: "server: configuration"
{%- endif %}
