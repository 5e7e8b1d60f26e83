package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// keys sign requests. The names are those of the container's credentials endpoint.
type keys struct {
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	Expiration      time.Time
}

// credentials of the task, from its environment or from the endpoint that ECS has for its role; asked for again before
// they expire.
type credentials struct {
	environment []string
	guard       sync.Mutex
	current     keys
}

// What ECS and EKS serve a task's credentials on over plain HTTP; anywhere else they would travel in the open.
var plainHosts = map[string]bool{
	"169.254.170.2": true, "169.254.170.23": true, "fd00:ec2::23": true, "localhost": true,
}

// renewBefore: AWS renews a task's credentials long before they expire.
const renewBefore = 5 * time.Minute

// get may fail with a failure, or with something that is worth another try.
func (c *credentials) get(ctx context.Context) (keys, error) {
	c.guard.Lock()
	defer c.guard.Unlock()
	given := keys{
		AccessKeyID:     variable(c.environment, "AWS_ACCESS_KEY_ID"),
		SecretAccessKey: variable(c.environment, "AWS_SECRET_ACCESS_KEY"),
		Token:           variable(c.environment, "AWS_SESSION_TOKEN"),
	}
	if given.AccessKeyID != "" && given.SecretAccessKey != "" {
		return given, nil
	}
	if c.current.AccessKeyID != "" && time.Until(c.current.Expiration) > renewBefore {
		return c.current, nil
	}
	asked, err := c.request(ctx)
	if err != nil {
		return keys{}, err
	}
	found, err := answered(asked)
	if err == nil {
		c.current = found
	}
	return found, err
}

// forget what S3 says has expired.
func (c *credentials) forget() {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.current = keys{}
}

func (c *credentials) request(ctx context.Context) (*http.Request, error) {
	place := variable(c.environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := variable(c.environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		place = "http://169.254.170.2" + relative
	}
	if place == "" {
		return nil, wrong("there are no credentials for S3; does the task have a role?")
	}
	at, err := url.Parse(place)
	if err != nil || at.Hostname() == "" {
		return nil, wrong("the place of the task's credentials is no address: %q", place)
	}
	if address := net.ParseIP(at.Hostname()); at.Scheme != "https" && !plainHosts[at.Hostname()] && !address.IsLoopback() {
		return nil, wrong("credentials are not asked for over plain HTTP from %s", at.Hostname())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, wrong("the place of the task's credentials is no address: %q", place)
	}
	token := variable(c.environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := variable(c.environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	return request, nil
}

func answered(asked *http.Request) (keys, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}} // and no proxy
	response, err := client.Do(asked)
	if err != nil {
		return keys{}, passing("the task's credentials could not be read: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode != http.StatusOK {
		return keys{}, passing("the task's credentials could not be read: %s", response.Status)
	}
	var found keys
	if err := json.Unmarshal(text, &found); err != nil || found.AccessKeyID == "" || found.SecretAccessKey == "" {
		return keys{}, passing("the task's credentials could not be read: an answer of another form")
	}
	if found.Expiration.IsZero() {
		found.Expiration = time.Now().Add(time.Hour)
	}
	return found, nil
}
