package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Config selects the destination and size of objects and the resources of a writer. Zero values select the defaults.
type Config struct {
	Bucket, Prefix string // object names are PREFIX_INDEX
	Endpoint       string // URL or host:port; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, Amazon's
	Region         string // empty: AWS_REGION, AWS_DEFAULT_REGION, us-east-1
	PathStyle      bool   // bucket name in the path, never in the host name

	AccessKey, SecretKey, SessionToken string // empty: from the environment, the profile, or the machine's IAM role
	Profile                            string // of ~/.aws/credentials; empty: AWS_PROFILE, default

	PacketsPerObject int   // 0: no limit if BytesPerObject is set, else 1
	BytesPerObject   int64 // maximum size of an object with more than one packet; 0: no limit
	PacketDataOffset int   // bytes skipped at the start of each packet

	MD5        bool          // Content-MD5 instead of CRC-32C, for stores that do not support it
	Staging    int64         // bytes; 0: DefaultStaging
	Uploads    int           // concurrent requests; 0: DefaultUploads
	Attempts   int           // per request; 0: DefaultAttempts
	Timeout    time.Duration // per request including all attempts; 0: DefaultTimeout
	EndTimeout time.Duration // time to wait for uploads at the end; 0: DefaultEndTimeout
	Wait       bool          // block the consumer while staging memory is full, instead of losing packets
}

// Defaults and limits of a Config.
const (
	DefaultStaging    = 256 << 20
	MinStaging        = 16 << 20 // two parts of a large object
	DefaultUploads    = 8
	DefaultAttempts   = 10
	DefaultTimeout    = 5 * time.Minute
	DefaultEndTimeout = 30 * time.Second
	amazon            = "https://s3.amazonaws.com"
)

// complete sets the defaults.
func (c *Config) complete() error {
	if c.PacketsPerObject == 0 && c.BytesPerObject == 0 {
		c.PacketsPerObject = 1
	}
	c.Staging = cmp.Or(c.Staging, DefaultStaging)
	c.Uploads = cmp.Or(c.Uploads, DefaultUploads)
	c.Attempts = cmp.Or(c.Attempts, DefaultAttempts)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.EndTimeout = cmp.Or(c.EndTimeout, DefaultEndTimeout)
	c.Region = cmp.Or(c.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	c.Endpoint = cmp.Or(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	if err := s3utils.CheckValidBucketName(c.Bucket); err != nil {
		return fmt.Errorf("bucket %q: %w", c.Bucket, err)
	}
	switch {
	case c.Staging < MinStaging:
		return fmt.Errorf("staging of %d bytes: at least %d are needed", c.Staging, MinStaging)
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return errors.New("an access key and a secret key come together: one of them is missing")
	}
	return nil
}

// Client completes c with the defaults and returns a client for the store and its credentials. It sends no request.
func (c *Config) Client() (*minio.Core, *credentials.Credentials, error) {
	if err := c.complete(); err != nil {
		return nil, nil, err
	}
	at := c.Endpoint
	if !strings.Contains(at, "://") {
		at = "https://" + at
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" {
		return nil, nil, fmt.Errorf("endpoint %q: http://HOST:PORT or https://HOST:PORT expected", c.Endpoint)
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, nil, err
	}
	transport.MaxIdleConnsPerHost = c.Uploads
	transport.WriteBufferSize = chunkBytes
	lookup := minio.BucketLookupAuto
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	keys := c.credentials()
	core, err := minio.NewCore(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https", Region: c.Region,
		BucketLookup: lookup, Transport: transport, MaxRetries: 1})
	return core, keys, err
}

// credentials returns the configured credentials, or the usual provider chain.
func (c *Config) credentials() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.SessionToken)
	}
	role := &credentials.IAM{Client: &http.Client{Timeout: 2 * time.Second}}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: c.Profile}, role,
	})
}
