#!/usr/bin/env bash
# Makes the certificates of a discovery store and writes them into secrets, unless they are valid for long enough.
#
# CodeBuild runs this during a deployment. Variables: AUTHORITY, MEMBERS, CLIENTS and ADMINISTRATOR are the ARNs of the
# secrets, HOSTS the names or IPv4 addresses of the members (with commas), MEMBER_NAME the common name of their
# certificate, CLIENT_NAMES those of the clients' (with commas), AUTHORITY_DAYS and DAYS how long they are valid, LEFT_DAYS
# what must be left. The authority stays the same, so members with an old and with a new certificate trust each other.
# A secret keeps what it held: clients that have left the list may still run.
set -euo pipefail
umask 077
cd "$(mktemp -d)"

# held SECRET: writes a secret into value.json, which is empty if the secret has no value yet. Ends the program if AWS
# refuses, so that nothing is taken for missing that only could not be read.
held() {
  aws secretsmanager get-secret-value --secret-id "$1" --query SecretString --output text >value.json 2>error || {
    grep -q ResourceNotFoundException error || { cat error >&2; exit 1; }
    : >value.json
  }
}

# stored SECRET KEY FILE: writes one value of a secret into a file; fails if the secret has none yet. A new secret
# of CloudFormation holds random text.
stored() {
  held "$1"
  python3 -c 'import json, sys; print(json.load(open("value.json"))[sys.argv[1]], end="")' "$2" >"$3" 2>/dev/null || return 1
  rm value.json
}

# store SECRET KEY=FILE...: writes files into a secret, as one JSON object. Nothing is printed or in arguments.
store() {
  local secret=$1
  shift
  held "$secret"
  python3 -c 'import json, sys
try:
    held = dict(json.load(open("value.json")))
except (TypeError, ValueError):
    held = {}
print(json.dumps({**held, **{key: open(name).read() for key, _, name in (word.partition("=") for word in sys.argv[1:])}}))' "$@" >new.json
  rm value.json
  aws secretsmanager put-secret-value --secret-id "$secret" --secret-string file://new.json >/dev/null
  rm new.json
}

# lasts FILE DAYS: whether a certificate is valid that long.
lasts() {
  openssl x509 -in "$1" -noout -checkend $(($2 * 86400)) >/dev/null
}

# names FILE: the hosts of a certificate, sorted.
names() {
  openssl x509 -in "$1" -noout -ext subjectAltName | sed 's/IP Address/IP/g' | grep -oE '(DNS|IP):[^, ]*' | sort | paste -sd,
}

# issue NAME EXTENSIONS [SUBJECT]: a key NAME.key and a certificate NAME.crt of the authority.
issue() {
  openssl ecparam -genkey -name prime256v1 -noout -out "$1.key"
  openssl req -new -key "$1.key" -subj "${3:-/CN=$1}" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$DAYS" -sha256 \
    -extfile <(printf '%b' "$2") -out "$1.crt" 2>/dev/null
}

if ! stored "$AUTHORITY" cert ca.crt || ! stored "$AUTHORITY" key ca.key || ! lasts ca.crt "$DAYS"; then
  echo "new authority, valid for $AUTHORITY_DAYS days"
  openssl ecparam -genkey -name prime256v1 -noout -out ca.key
  openssl req -x509 -new -key ca.key -subj "/CN=discovery" -days "$AUTHORITY_DAYS" -sha256 -out ca.crt \
    -addext "keyUsage=critical,keyCertSign,cRLSign"
  store "$AUTHORITY" cert=ca.crt key=ca.key
fi

wanted=$(tr ',' '\n' <<<"$HOSTS" | sed -E 's/^[0-9.]+$/IP:&/; t; s/^/DNS:/' | sort | paste -sd,)
# valid SECRET FILE KEY: whether a secret holds a certificate of this authority that lasts.
valid() {
  stored "$1" "$3" "$2" && lasts "$2" "$LEFT_DAYS" && openssl verify -CAfile ca.crt "$2" >/dev/null 2>&1
}
usage='basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n'

if valid "$MEMBERS" old.crt cert && [ "$(names old.crt)" = "$wanted" ]; then
  echo "the members' certificate stays"
else
  issue "$MEMBER_NAME" "${usage}extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=$wanted\n"
  store "$MEMBERS" ca=ca.crt "cert=$MEMBER_NAME.crt" "key=$MEMBER_NAME.key"
  echo "new certificate of the members, valid for $DAYS days"
fi

for name in ${CLIENT_NAMES//,/ }; do
  if valid "$CLIENTS" old.crt "$name-cert"; then
    echo "the certificate of the client $name stays"
  else
    issue "$name" "${usage}extendedKeyUsage=clientAuth\n"
    store "$CLIENTS" ca=ca.crt "$name-cert=$name.crt" "$name-key=$name.key"
    echo "new certificate of the client $name, valid for $DAYS days"
  fi
done

if valid "$ADMINISTRATOR" old.crt cert; then
  echo "the administrator's certificate stays"
else
  # Without a common name, which etcd would take for a user. The password stays: the store has it.
  issue administrator "${usage}extendedKeyUsage=clientAuth\n" /O=administrator
  stored "$ADMINISTRATOR" password password || openssl rand -hex 32 | tr -d '\n' >password
  store "$ADMINISTRATOR" ca=ca.crt cert=administrator.crt key=administrator.key password=password
  echo "new certificate of the administrator, valid for $DAYS days"
fi
