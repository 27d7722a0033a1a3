package identity

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func tokenOf(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestParseToken(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text      string
		renewable bool
	}{
		"of a service account":         {tokenOf(`{"sub":"system:serviceaccount:fleet:paris","iat":1000,"exp":4000}`), true},
		"static":                       {"secret", false},
		"empty":                        {"", false},
		"with dots":                    {"a.b.c", false},
		"of a person":                  {tokenOf(`{"sub":"jane","iat":1000,"exp":4000}`), false},
		"that never ends":              {tokenOf(`{"sub":"system:serviceaccount:fleet:paris","iat":1000}`), false},
		"that ends before it begins":   {tokenOf(`{"sub":"system:serviceaccount:fleet:paris","iat":4000,"exp":1000}`), false},
		"of an account without a name": {tokenOf(`{"sub":"system:serviceaccount:fleet","iat":1000,"exp":4000}`), false},
		"with other types":             {tokenOf(`{"sub":7,"iat":"x"}`), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parseToken(tc.text)
			if got.renewable() != tc.renewable || got.text != tc.text {
				t.Errorf("renewable %v, text kept %v; want renewable %v", got.renewable(), got.text == tc.text, tc.renewable)
			}
			if tc.renewable && (got.namespace != "fleet" || got.name != "paris" || got.renewAt().Unix() != 3000) {
				t.Errorf("got %s/%s, renewed at %d", got.namespace, got.name, got.renewAt().Unix())
			}
		})
	}
}

func TestSupersedes(t *testing.T) {
	t.Parallel()
	mine := func(exp int) *token {
		return parseToken(tokenOf(fmt.Sprintf(`{"sub":"system:serviceaccount:fleet:paris","iat":1000,"exp":%d}`, exp)))
	}
	other := parseToken(tokenOf(`{"sub":"system:serviceaccount:fleet:rome","iat":1000,"exp":2000}`))
	tests := map[string]struct {
		a, b *token
		want bool
	}{
		"the first":                  {mine(2000), nil, true},
		"the same":                   {mine(2000), mine(2000), false},
		"one that lives longer":      {mine(3000), mine(2000), true},
		"one that lives shorter":     {mine(2000), mine(3000), false},
		"another account's":          {other, mine(3000), true},
		"a static one":               {parseToken("static"), mine(3000), true},
		"of an account, for static":  {mine(3000), parseToken("static"), true},
		"another static, for static": {parseToken("b"), parseToken("a"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.a.supersedes(tc.b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// account makes a service account that may read what the hub asks of the cluster, and returns how to make a token of it.
func (h *hub) account(name string) (newToken func() string) {
	h.t.Helper()
	ns := placement.MemberNamespace(h.cluster.Name)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}},
	}
	for _, object := range []client.Object{account, role, binding} {
		if err := h.client.Create(h.t.Context(), object); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { framework.Remove(h.t, h.client, object) })
	}
	return func() string {
		h.t.Helper()
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
		if err := h.client.SubResource("token").Create(h.t.Context(), account, request); err != nil {
			h.t.Fatal(err)
		}
		return request.Status.Token
	}
}

// mayRenew lets an account make tokens of its own, as docs/installing.md says.
func (h *hub) mayRenew(name string) {
	h.t.Helper()
	role := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(h.cluster.Name), Name: name}
	if err := h.client.Get(h.t.Context(), key, role); err != nil {
		h.t.Fatal(err)
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{name}, Verbs: []string{"create"},
	})
	if err := h.client.Update(h.t.Context(), role); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) tokenOptions(dir, token string, c clock.WithTicker, l *log) Options {
	h.t.Helper()
	o := h.options(dir, c, l)
	o.BootstrapTokenFile, o.TokenFile = "", filepath.Join(dir, "token")
	if err := os.WriteFile(o.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// step lets time pass until something is so: the identity may set its timer only after the first step.
func stepUntil(t *testing.T, c *clocktesting.FakeClock, what string, so func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		if so() {
			return true
		}
		if c.HasWaiters() {
			c.Step(tokenReread)
		}
		return false
	})
}

func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	h := newHub(t, "renews")
	first := h.account("agent")()
	c, l, dir := clocktesting.NewFakeClock(time.Now()), &log{}, t.TempDir()
	i, done := establish(t, t.Context(), h.tokenOptions(dir, first, c, l))
	finish(t, done)
	if err := signsIn(t, i); err != nil {
		t.Fatalf("with the token given: %v", err)
	}
	go func() { _ = i.Run(t.Context()) }()

	stepUntil(t, c, "it says what it lacks", func() bool { return strings.Contains(l.text(), "create serviceaccounts/token of itself") })
	if c.Since(parseToken(first).issued) < 40*time.Minute {
		t.Errorf("it asked for another token %s after the first was made, whose life is an hour", c.Since(parseToken(first).issued))
	}
	if strings.Contains(l.text(), first) {
		t.Error("the log has the token")
	}
	h.mayRenew("agent")
	stepUntil(t, c, "it has another token", func() bool { return i.tokens.current.Load().text != first })
	second := i.tokens.current.Load().text
	if err := signsIn(t, i); err != nil {
		t.Fatalf("with the token that it made: %v", err)
	}

	again, done := establish(t, t.Context(), h.tokenOptions(dir, first, c, l))
	finish(t, done)
	if got := again.tokens.current.Load().text; parseToken(got).expires.Before(parseToken(second).expires) {
		t.Error("an agent that starts again goes back to the token it was given first")
	}
}

func TestNewTokenInTheFileIsTakenUp(t *testing.T) {
	t.Parallel()
	h := newHub(t, "reads-again")
	two := h.account("two")()
	c, l, dir := clocktesting.NewFakeClock(time.Now()), &log{}, t.TempDir()
	o := h.tokenOptions(dir, "of no use", c, l)
	i, done := establish(t, t.Context(), o)
	finish(t, done)
	if err := signsIn(t, i); err == nil {
		t.Fatal("a token of no use signs in")
	}
	go func() { _ = i.Run(t.Context()) }()
	if err := os.WriteFile(o.TokenFile, []byte(two), 0o600); err != nil {
		t.Fatal(err)
	}
	stepUntil(t, c, "the new token is in use", func() bool { return i.tokens.current.Load().text == two })
	if err := signsIn(t, i); err != nil {
		t.Fatalf("with the new token: %v", err)
	}
}
